"""
Events of runs: hone.run.v1.RunEvent, decoded by its descriptors.

`npm run generate` writes run.binpb beside this file, so that no protobuf compiler for Python is needed.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from .points import Points, evaluation_points, step_points


@dataclass(frozen=True)
class Event:
    """What a sink does with an event."""

    sequence: int
    """Position in the stream."""
    run: str
    time_ms: int
    kind: str
    """accepted, points, resumed or ended."""
    config_json: str = ""
    points: Points | None = None
    phase: str = ""
    """How the run ended: completed, failed or cancelled."""


def _load() -> Any:
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString(Path(__file__).with_name("run.binpb").read_bytes())
    for file in files.file:
        pool.Add(file)
    return pool


_POOL = _load()
_RUN_EVENT = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("hone.run.v1.RunEvent"))
_PHASES = {
    value.number: value.name.removeprefix("RUN_PHASE_").lower()
    for value in _POOL.FindEnumTypeByName("hone.run.v1.RunPhase").values
}


def decode_event(subject: str, sequence: int, data: bytes) -> Event | None:
    """None for what sinks leave out: other kinds, what is not an event, and an event whose subject names another run."""
    try:
        message = _RUN_EVENT.FromString(data)
    except DecodeError:
        return None  # the tracer puts a copy of it into the stream DEAD
    run = subject.split(".")[3]
    if message.run_id != run:
        return None
    kind = message.WhichOneof("kind")
    about = partial(Event, sequence, run, int(message.time_ms))
    if kind == "accepted":
        return about(kind="accepted", config_json=message.accepted.config_json)
    if kind == "step_completed":
        step = message.step_completed
        return about(kind="points", points=step_points(step.step, dict(step.metrics)))
    if kind == "evaluated":
        done = message.evaluated
        points = evaluation_points(done.version, done.mode, dict(done.metrics))
        return about(kind="points", points=points)
    if kind == "ended":
        return about(kind="ended", phase=_PHASES.get(message.ended.phase, "failed"))
    if kind == "resumed":
        return about(kind="resumed")
    return None
