"""
SwanLab. It leaves out a point whose step is not behind the last one of its curve, also of a run that is resumed from its server.
Without a server (SWANLAB_MODE=offline), each opening writes a file of its own, and what the earlier files hold is read from them;
`swanlab sync` puts them together by the run's id.
"""

import os
from typing import Any

import swanlab
from swanlab.proto.swanlab.record.v1.record_pb2 import Record

from ..points import Points
from . import RunInfo
from .leveldb_log import read_records

_STATES = {"completed": "success", "failed": "crashed", "cancelled": "aborted"}


class SwanlabRun:
    """Backend for SwanLab."""

    def __init__(self, info: RunInfo) -> None:
        self._held = _held_in_files(info)
        self._run = swanlab.init(
            project=info.project,
            name=info.name,
            id=info.identity,
            resume="allow",
            mode=_mode(),
            log_dir=str(info.folder),
            config=info.config,
            # This process is not what trains: neither its load nor its packages say anything about the run.
            settings=swanlab.Settings(
                probe={
                    "hardware": False,
                    "runtime": False,
                    "requirements": False,
                    "git": False,
                    "monitor": False,
                },
                terminal={"proxy_type": "none"},
            ),
        )

    def write(self, sequence: int, time_ms: int, points: Points) -> None:
        new = {key: value for key, value in points.values.items() if (key, points.step) not in self._held}
        if new:
            self._run.log(new, step=points.step)

    def end(self, phase: str) -> None:
        self._run.finish(state=_STATES.get(phase, "crashed"))

    def close(self) -> None:
        self._run.finish()


def open_run(info: RunInfo) -> SwanlabRun:
    return SwanlabRun(info)


def _mode() -> Any:
    return os.environ.get("SWANLAB_MODE", "online")


def _held_in_files(info: RunInfo) -> set[tuple[str, int]]:
    """Points that files of this run hold which were written without a server."""
    held: set[tuple[str, int]] = set()
    for file in info.folder.glob(f"run-*/run-{info.identity.replace('-', '_')}.swanlab"):
        for data in read_records(file):
            record = Record.FromString(data)
            if record.WhichOneof("record_type") == "scalar":
                held.add((record.scalar.key, record.scalar.step))
    return held if _mode() != "online" else set()
