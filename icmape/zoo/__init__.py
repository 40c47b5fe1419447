"""The problems in the package: one folder each, with an entry that names its parts."""

from icmape.zoo.bandit import ENTRY as BANDIT
from icmape.zoo.hotspot import ENTRY as HOTSPOT
from icmape.zoo.signal import ENTRY as SIGNAL

ENTRIES = (BANDIT, SIGNAL, HOTSPOT)
