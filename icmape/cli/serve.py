"""`icmape serve`."""

from icmape_agent.server.command import serve_command as serve_session


def serve_command(arguments: list[str]) -> int:
    """A session over the network. Its code needs no JAX, so it is in `icmape_agent`."""
    return serve_session(arguments, "icmape serve")
