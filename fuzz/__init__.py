"""Malformed inputs of every kind that icmape reads: each must be refused with one sentence, or change nothing.

`python -m fuzz` runs them (`make fuzz`); docs/reference/robustness.md has the counts.
"""
