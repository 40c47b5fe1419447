"""Baselines without learning, for any problem: by name, tuned to 1-δ, and as curves."""
