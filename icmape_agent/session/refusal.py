"""Why a message is refused."""

from typing import Any

from icmape_agent.errors import UserError

__all__ = ["KINDS", "Refusal", "UserError"]

KINDS = {
    "malformed": "the message does not fit the schema",
    "refused": "a number is out of range, or a reading is none of this problem",
    "conflict": "the journal holds something else for this agent and round, or for this id",
    "forbidden": "the sender may not send this message",
    "early": "something must come first: the observation before round 0, or the stop",
    "storage": "the journal could not be written; the same message may succeed later",
}
"""Kinds of errors in replies."""


class Refusal(UserError):
    """A message that changes nothing: the kind of the error, one sentence, and what is recorded instead."""

    def __init__(self, kind: str, text: str, to_agents: str | None = None, **details: Any):
        super().__init__(text)
        self.kind, self.details, self.to_agents = kind, details, text if to_agents is None else to_agents
        """What agents are told: no paths of the machine that keeps the session."""
