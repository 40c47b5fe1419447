"""TensorBoard, Weights & Biases and Trackio behind one interface. Each needs the extra of its name."""

import json
import os
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from icmape.extras import missing_extra

PROJECT = "icmape"
TENSORBOARD_FOLDER = "tensorboard"


class Tracker(ABC):
    """One run in one tracker. `memory` is what it needs to go on with the same run later; it is kept as JSON."""

    @abstractmethod
    def __init__(self, folder: Path, config: Mapping[str, Any], memory: dict[str, Any], first: int):
        """Open the run, or go on with the one that `memory` names.

        It is trained from iteration `first` on. memory["logged"] is the last iteration that the tracker has; whoever
        discards rows sets it lower, and gets the rows after it from metrics.jsonl.
        """

    @abstractmethod
    def numbers(self, values: Mapping[str, float], iteration: int) -> None:
        """Metrics of an iteration, by name."""

    @abstractmethod
    def results(self, values: Mapping[str, float], iteration: int) -> None:
        """Numbers of the whole run."""

    @abstractmethod
    def figure(self, name: str, picture: Path, iteration: int) -> None:
        """A picture (PNG)."""

    @abstractmethod
    def close(self) -> None:
        """Write what is left to write."""


class TensorBoard(Tracker):
    """Event files in RUN/tensorboard. A resumed run adds one, which discards what the ones before have too many."""

    def __init__(self, folder: Path, config: Mapping[str, Any], memory: dict[str, Any], first: int):
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        goes_on = any((folder / TENSORBOARD_FOLDER).glob("*"))
        self._writer = EventFileWriter(str(folder / TENSORBOARD_FOLDER))
        if goes_on:
            # after a kill, rows may be there that metrics.jsonl has lost, or that tracking.json does not know
            memory["logged"] = min(memory.get("logged", 0), first - 1)
            session = SessionLog(status=SessionLog.START)
            self._writer.add_event(Event(wall_time=time.time(), step=memory["logged"] + 1, session_log=session))
        if not memory.get("opened"):
            self._text("configuration", f"```json\n{json.dumps(config, indent=2)}\n```")
            memory["opened"] = True

    def numbers(self, values: Mapping[str, float], iteration: int) -> None:
        """Scalars."""
        self._write([{"tag": name, "simple_value": value} for name, value in values.items()], iteration)

    results = numbers

    def figure(self, name: str, picture: Path, iteration: int) -> None:
        """An image."""
        content = picture.read_bytes()
        width, height = (int.from_bytes(content[start : start + 4], "big") for start in (16, 20))  # of a PNG's header
        image = {"width": width, "height": height, "colorspace": 4, "encoded_image_string": content}
        self._write([{"tag": name, "image": image}], iteration)

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def _text(self, name: str, text: str) -> None:
        from tensorboard.compat.proto.tensor_pb2 import TensorProto
        from tensorboard.plugins.text.metadata import create_summary_metadata

        tensor = TensorProto(dtype="DT_STRING", string_val=[text.encode()])
        self._write([{"tag": name, "metadata": create_summary_metadata(name, ""), "tensor": tensor}], 0)

    def _write(self, values: list[dict[str, Any]], iteration: int) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        summary = Summary(value=[Summary.Value(**value) for value in values])
        self._writer.add_event(Event(wall_time=time.time(), step=iteration, summary=summary))
        self._writer.flush()


class WeightsAndBiases(Tracker):
    """A run of Weights & Biases: offline in RUN/wandb, unless WANDB_MODE says something else.

    Offline parts of a run are not joined: the one that is uploaded last replaces the others. So each has all rows.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any], memory: dict[str, Any], first: int):
        import wandb

        memory.setdefault("id", secrets.token_hex(4))
        memory.setdefault("project", os.environ.get("WANDB_PROJECT") or PROJECT)
        mode: Any = os.environ.get("WANDB_MODE") or "offline"
        online = mode not in ("offline", "dryrun")
        if not (online and memory.get("online", True)):
            memory["logged"] = 0
        memory["online"] = online
        self._wandb = wandb
        self._run = wandb.init(
            project=memory["project"],
            id=memory["id"],
            name=folder.name,
            config=dict(config),
            dir=str(folder),
            mode=mode,
            resume="allow" if online else None,
            settings=wandb.Settings(silent=True, console="off"),
        )
        self._run.define_metric("iteration")
        self._run.define_metric("*", step_metric="iteration")

    def numbers(self, values: Mapping[str, float], iteration: int) -> None:
        """Rows over `iteration`."""
        self._run.log({**values, "iteration": iteration})

    def results(self, values: Mapping[str, float], iteration: int) -> None:
        """Numbers of the run's summary."""
        self._run.summary.update(dict(values))

    def figure(self, name: str, picture: Path, iteration: int) -> None:
        """An image."""
        self._run.log({name: self._wandb.Image(str(picture)), "iteration": iteration})

    def close(self) -> None:
        """Finish this part of the run."""
        self._run.finish()


class Trackio(Tracker):
    """A run of Trackio, in its own local folder (TRACKIO_DIR)."""

    def __init__(self, folder: Path, config: Mapping[str, Any], memory: dict[str, Any], first: int):
        import trackio

        memory.setdefault("name", f"{folder.name}-{secrets.token_hex(4)}")
        self._trackio = trackio
        self._run = trackio.init(
            project=PROJECT,
            name=memory["name"],
            config=dict(config),
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )

    def numbers(self, values: Mapping[str, float], iteration: int) -> None:
        """A row."""
        self._run.log(dict(values), step=iteration)

    results = numbers

    def figure(self, name: str, picture: Path, iteration: int) -> None:
        """An image."""
        self._run.log({name: self._trackio.Image(str(picture))}, step=iteration)

    def close(self) -> None:
        """Finish this part of the run."""
        self._trackio.finish()


TRACKERS: Mapping[str, type[Tracker]] = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases, "trackio": Trackio}
"""By the name of their package, which is that of the extra too."""


def check_installed(name: str) -> None:
    """Raise `UserError` if the package of a tracker is missing."""
    missing_extra(name, name, f"--track {name}")
