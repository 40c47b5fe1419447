"""Training runs in trackers of experiments, and a local page with live curves."""

from icmape.tracking.backends import TRACKERS, Tracker
from icmape.tracking.follow import Tracking, tracked_with

__all__ = ["TRACKERS", "Tracker", "Tracking", "tracked_with"]
