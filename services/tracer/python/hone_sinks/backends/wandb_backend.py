"""
W&B. Its own step is the position of the event in the stream, which grows with every row; the x-axis of all charts is
training/global_step. A run that is resumed tells up to which row W&B has it. Without a server (WANDB_MODE=offline), each
opening writes a file of its own, and what the earlier files hold is read from them; `wandb sync` puts them together by the run's id.
"""

import json

import wandb
from wandb.proto import wandb_internal_pb2

from ..points import Points
from . import RunInfo
from .leveldb_log import read_records

STEP = "training/global_step"
# Times of steps are in the data; W&B's own are those at which it got them.
_EXIT_CODES = {"completed": 0, "failed": 1, "cancelled": 255}


class WandbRun:
    """Backend for W&B."""

    def __init__(self, info: RunInfo) -> None:
        held = _held_in_files(info)
        self._run = wandb.init(
            project=info.project,
            id=info.identity,
            name=info.name,
            dir=info.folder,
            config=info.config,
            resume="allow",
            settings=wandb.Settings(console="off", x_disable_stats=True, x_disable_meta=True),
        )
        self._run.define_metric("*", step_metric=STEP)
        # `run.step` is the first step that a resumed run may write.
        self._next = max(held + 1, self._run.step)

    def write(self, sequence: int, time_ms: int, points: Points) -> None:
        if sequence < self._next:
            return
        self._run.log({**points.values, STEP: points.step}, step=sequence, commit=True)

    def end(self, phase: str) -> None:
        self._run.finish(exit_code=_EXIT_CODES.get(phase, 1))

    def close(self) -> None:
        self._run.finish()


def open_run(info: RunInfo) -> WandbRun:
    return WandbRun(info)


def _held_in_files(info: RunInfo) -> int:
    """The last row that files of this run hold which were written without a server; 0 if there is none."""
    last = 0
    for file in info.folder.glob(f"wandb/offline-run-*-{info.identity}/run-{info.identity}.wandb"):
        for data in read_records(file):
            record = wandb_internal_pb2.Record.FromString(data)
            if record.WhichOneof("record_type") != "history":
                continue
            row = {item.key or "/".join(item.nested_key): item.value_json for item in record.history.item}
            last = max(last, int(json.loads(row.get("_step", "0"))))
    return last
