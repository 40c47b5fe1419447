"""A plugin of pytest: `jaxmarl.make` makes our environments and no others."""

from typing import Any

import jaxmarl
from jaxmarl import registration

from icmape import to_jaxmarl


def make(env_id: str, **settings: Any) -> Any:
    """What stands for `jaxmarl.make`."""
    return to_jaxmarl(env_id, **settings)


for module in (jaxmarl, registration):
    module.make = make
