"""The version of icmape and of its agents."""

__version__ = "0.14.1"
