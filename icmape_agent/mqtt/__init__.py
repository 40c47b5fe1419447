"""A team over MQTT: a device for every agent, which acts by itself, and a coordinator that keeps the session.

Between agents goes one bit: the retained message on the stop topic. Needs paho-mqtt (the extra `mqtt`).
"""

from icmape_agent.mqtt.broker import Broker
from icmape_agent.mqtt.coordinator import Coordinator
from icmape_agent.mqtt.device import Clock, Device, Ended
from icmape_agent.mqtt.readers import Command, Lines, Reader, Request

__all__ = ["Broker", "Clock", "Command", "Coordinator", "Device", "Ended", "Lines", "Reader", "Request"]
