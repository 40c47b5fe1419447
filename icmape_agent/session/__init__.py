"""Sessions of a team: ask and tell, with a journal. The standard library suffices."""

from icmape_agent.session.crew import STOP, Acting, Actor, Crew
from icmape_agent.session.listing import find_sessions
from icmape_agent.session.messages import AGENT_MESSAGES
from icmape_agent.session.refusal import KINDS, Refusal
from icmape_agent.session.schema import SCHEMA_FILE
from icmape_agent.session.session import Session, open_session
from icmape_agent.session.stdio import handle_text, serve

__all__ = [
    "AGENT_MESSAGES",
    "KINDS",
    "SCHEMA_FILE",
    "STOP",
    "Acting",
    "Actor",
    "Crew",
    "Refusal",
    "Session",
    "find_sessions",
    "handle_text",
    "open_session",
    "serve",
]
