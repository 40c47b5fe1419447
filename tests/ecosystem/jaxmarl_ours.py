"""A plugin of pytest: `jaxmarl.make` and `jaxmarl.registered_envs` give our environments and no others."""

from typing import Any

import jaxmarl
from jaxmarl import registration

from icmape import to_jaxmarl

PRESETS = ["bandit-quick", "bandit-a3p5", "signal-quick"]


def make(env_id: str, **settings: Any) -> Any:
    """What stands for `jaxmarl.make`."""
    return to_jaxmarl(env_id, **settings)


for module in (jaxmarl, registration):
    module.make, module.registered_envs = make, PRESETS
