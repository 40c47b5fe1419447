"""The version, which everything may import."""

__version__ = "0.11.0"
