"""
The systems that figures are written to. Each has a module `<name>_backend` with a function `open_run(RunInfo) -> Backend`.

A backend gets the events of its run from the first on whenever it is opened (S3), and leaves out those that the system has.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..points import Points


@dataclass(frozen=True)
class RunInfo:
    """A run as a system is told about it."""

    name: str
    """The run's id, which people know."""
    identity: str
    """The same for each opening of the run, and of no other run, also of one with the same name."""
    project: str
    folder: Path
    """Where the package may keep files; it outlives restarts."""
    config: dict[str, Any]
    """The resolved run file."""


class Backend(Protocol):
    """One run that is open."""

    def write(self, sequence: int, time_ms: int, points: Points) -> None:
        """Writes a step or an evaluation unless the system has it. Each comes once, in the order of the stream."""

    def end(self, phase: str) -> None:
        """Returns when the system has everything, and shows that the run is completed, failed or cancelled."""

    def close(self) -> None:
        """Returns when the system has everything; the run will go on."""
