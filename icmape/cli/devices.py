"""`icmape agent` and `icmape coordinate`: the commands of `icmape_agent`, which need no JAX."""

from icmape_agent.command import main


def agent_command(arguments: list[str]) -> int:
    """One agent of a team at a broker."""
    return main(["agent", *arguments], "icmape")


def coordinate_command(arguments: list[str]) -> int:
    """The session of a team at a broker."""
    return main(["coordinate", *arguments], "icmape")
