"""A proxy between agents and their broker that doubles, delays and drops MQTT messages, and cuts connections."""

import asyncio
import random
import threading
from dataclasses import dataclass, field

PUBLISH = 3  # type of a packet
QOS = 0b0110  # of a message, in its first byte


@dataclass(frozen=True)
class Faults:
    """Probabilities for every message that passes, in either direction."""

    doubled: float = 0.1
    delayed: float = 0.2
    dropped: float = 0.05
    cut: float = 0.004  # with the message, the connection is lost
    longest: float = 0.3  # seconds of a delay


@dataclass
class Counts:
    """What happened to messages."""

    messages: int = 0
    doubled: int = 0
    delayed: int = 0
    dropped: int = 0
    cut: int = 0


@dataclass
class Proxy:
    """Listens on a port of this machine and passes connections on to the broker's."""

    port: int
    faults: Faults
    seed: int
    counts: Counts = field(default_factory=Counts)
    at: int = 0

    def start(self) -> "Proxy":
        """Serve in a thread of its own; `at` is the port to connect to."""
        self._chance, self._ready = random.Random(self.seed), threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait()
        return self

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.at = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        """End all connections."""
        tasks = asyncio.all_tasks(self._loop) - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.05)  # in which transports close

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            writer.close()
            return
        ways = [
            asyncio.ensure_future(self._pass(reader, far_writer)),
            asyncio.ensure_future(self._pass(far_reader, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            for end in (writer, far_writer):
                end.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass packets on until the connection ends or is cut."""
        try:
            while True:
                packet = await _packet(reader)
                if packet[0] >> 4 != PUBLISH or not packet[0] & QOS:
                    writer.write(packet)
                elif not self._message(packet, writer):
                    return
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return

    def _message(self, packet: bytes, writer: asyncio.StreamWriter) -> bool:
        """Pass a message on, or not; False if the connection is cut."""
        faults, counts, chance = self.faults, self.counts, self._chance
        counts.messages += 1
        if chance.random() < faults.cut:
            counts.cut += 1
            return False
        if chance.random() < faults.dropped:
            counts.dropped += 1
            return True
        copies = 1 + (chance.random() < faults.doubled)
        counts.doubled += copies - 1
        for _ in range(copies):
            if chance.random() < faults.delayed:
                counts.delayed += 1
                self._loop.call_later(chance.uniform(0, faults.longest), _write, writer, packet)
            else:
                writer.write(packet)
        return True


async def _packet(reader: asyncio.StreamReader) -> bytes:
    """One packet: a byte, the length of the rest in 7 bits a byte, the rest."""
    head = await reader.readexactly(1)
    size, shift = 0, 0
    while True:
        byte = await reader.readexactly(1)
        head += byte
        size |= (byte[0] & 0x7F) << shift
        shift += 7
        if not byte[0] & 0x80:
            return head + await reader.readexactly(size)


def _write(writer: asyncio.StreamWriter, packet: bytes) -> None:
    if not writer.is_closing():
        writer.write(packet)
