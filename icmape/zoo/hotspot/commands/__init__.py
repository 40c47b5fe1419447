"""`icmape data`: measurements."""
