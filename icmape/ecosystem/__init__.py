"""Problems as environments of other libraries. Their packages are extras, imported when they are needed."""

from icmape.ecosystem.environments import to_jaxmarl, to_pettingzoo

__all__ = ["to_jaxmarl", "to_pettingzoo"]
