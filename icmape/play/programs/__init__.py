"""Programs of teams: traced by JAX, lowered to a few dozen operations on arrays, run without JAX (`icmape_agent`)."""
