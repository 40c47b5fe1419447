"""Water-quality measurements: getting, reading and judging exports."""
