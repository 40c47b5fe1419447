"""The version of icmape and of its agents."""

__version__ = "0.12.0"
