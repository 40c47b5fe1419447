"""Teams of icmape in the field, with NumPy alone: agents that act, and the answer from the data of all.

team = icmape_agent.load("team.safetensors")
agent = team.agent(0)
"""

from icmape_agent.answers import Answer, CredibleSet
from icmape_agent.errors import UserError
from icmape_agent.team import STOP, Agent, Team, load

__all__ = ["STOP", "Agent", "Answer", "CredibleSet", "Team", "UserError", "load"]
