"""Rules that do not learn, for any problem: by name, tuned to 1-δ, and as curves."""
