"""
A worker: writes one run with one package. It gets requests on its standard input and answers each on its standard output; what the
package prints goes to standard error. Without its follower it ends at once, as the follower begins again by itself.
"""

import fcntl
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from .backends import Backend, RunInfo
from .points import Points


def main(name: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    os.environ.setdefault("WANDB_SILENT", "true")
    writer = _Writer(name)
    for line in sys.stdin:
        try:
            writer.handle(json.loads(line))
            answer: dict[str, Any] = {"ok": True}
        except Exception as error:  # whatever a package throws, the follower tries again
            answer = {"error": f"{name}: {type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    # The packages would finish the run at the end of the process; the run goes on.
    os._exit(0)


class _Writer:
    def __init__(self, name: str) -> None:
        self._name = name
        self._backend: Backend | None = None
        self._written: set[tuple[str, int]] = set()
        self._lock: Any = None

    def handle(self, request: dict[str, Any]) -> None:
        match request["do"]:
            case "open":
                self._open(request)
            case "write":
                self._write(request)
            case "end":
                self._opened.end(request["phase"])
            case "close":
                self._opened.close()

    @property
    def _opened(self) -> Backend:
        if self._backend is None:
            raise RuntimeError("the run is not open")
        return self._backend

    def _open(self, request: dict[str, Any]) -> None:
        folder = Path(request["folder"])
        # An earlier worker of this run may still be ending; two would write the same points.
        self._lock = (folder / f"{request['identity']}.lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        module = importlib.import_module(f".backends.{self._name}_backend", __package__)
        self._backend = module.open_run(
            RunInfo(
                name=request["run"],
                identity=request["identity"],
                project=request["project"],
                folder=folder,
                config=json.loads(request["config"]),
            )
        )

    def _write(self, request: dict[str, Any]) -> None:
        points = Points(request["series"], request["step"], request["values"])
        key = (points.series, points.step)
        if key in self._written:
            return  # a trainer that took the run over reported its last step again
        self._written.add(key)
        self._opened.write(request["sequence"], request["time_ms"], points)


if __name__ == "__main__":
    main(sys.argv[1])
