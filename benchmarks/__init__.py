"""Speed as ratios, both sides measured in one run: `python -m benchmarks.run`."""
