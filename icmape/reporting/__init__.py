"""Tables, figures and displays."""
