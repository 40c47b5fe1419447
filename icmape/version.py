"""The version, which everything may import."""

from icmape_agent.version import __version__

__all__ = ["__version__"]
