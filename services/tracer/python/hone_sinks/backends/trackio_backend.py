"""
Trackio. It keeps a row for each step and each evaluation in a database of SQLite (TRACKIO_DIR); what that has is asked there. A server
(TRACKIO_SERVER_URL) or a Space (TRACKIO_SPACE_ID) tells only the last step of a resumed run: the evaluations of that one step
are then written again.
"""

import os
from typing import Any

from ..points import Points
from . import RunInfo

_REMOTE = ("TRACKIO_SERVER_URL", "TRACKIO_SPACE_ID")


class TrackioRun:
    """Backend for Trackio."""

    def __init__(self, info: RunInfo) -> None:
        # Imported here, as the package reads its settings when it is imported.
        import trackio
        from trackio.sqlite_storage import SQLiteStorage

        rows = SQLiteStorage.get_logs(info.project, info.identity)
        self._held = {(_series(row), int(row["step"])) for row in rows}
        self._run = trackio.init(
            project=info.project,
            name=info.identity,
            group=info.name,
            resume="allow",
            config=info.config,
            embed=False,
            auto_log_gpu=False,
        )
        is_remote = any(os.environ.get(name) for name in _REMOTE)
        # The package has no public name for it: the step that it would give the next row.
        self._last = self._run._next_step - 1 if is_remote else -1

    def write(self, sequence: int, time_ms: int, points: Points) -> None:
        if (points.series, points.step) in self._held or points.step < self._last:
            return
        if points.step == self._last and points.series == "train":
            return
        self._run.log(dict(points.values), step=points.step)

    def end(self, phase: str) -> None:
        self._run.finish()

    def close(self) -> None:
        self._run.finish()


def open_run(info: RunInfo) -> TrackioRun:
    os.environ.setdefault("TRACKIO_DIR", str(info.folder))
    return TrackioRun(info)


def _series(row: dict[str, Any]) -> str:
    """The series of a row: its figures all begin with val/<mode>, or none does."""
    for name in row:
        if name.startswith("val/"):
            return "/".join(name.split("/")[:2])
    return "train"
