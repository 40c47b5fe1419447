"""The problems that come with icmape: a folder each, and an entry that names its parts."""

from icmape.zoo.bandit.entry import ENTRY as BANDIT
from icmape.zoo.hotspot.entry import ENTRY as HOTSPOT
from icmape.zoo.signal.entry import ENTRY as SIGNAL

ENTRIES = (BANDIT, SIGNAL, HOTSPOT)
