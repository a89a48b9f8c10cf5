"""
What a rank did in a call, for the trace of whoever asked.

A call that is traced carries its caller's context; then each rank notes its phases, and the answer tells them. The trainer
makes spans of them, so a rank needs no exporter and no way out. Where a call carries none, a phase costs nothing.

Times are the host's: on a GPU a phase has ended when its work is handed over, and waits show where a result is read.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hone_fsdp import messages
from hone_fsdp.group import Group


class Spans:
    def __init__(self, group: Group) -> None:
        self._group = group
        self._made: list[tuple[str, int, int]] | None = None

    def begin(self, call: Any) -> None:
        """@param call the message WorkerCall"""
        self._made = [] if call.traceparent else None

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        if self._made is None:
            yield
            return
        begin, started = time.time_ns(), time.perf_counter_ns()
        try:
            yield
        finally:
            self._made.append((name, begin, begin + time.perf_counter_ns() - started))

    def collect(self) -> list[Any]:
        """Those of all ranks, on the first one; every rank calls it."""
        if self._made is None:
            return []
        gathered = self._group.gather(self._made)
        return [
            messages.WorkerSpan(name=name, rank=rank, begin_unix_ns=begin, end_unix_ns=end)
            for rank, made in enumerate(gathered or [])
            for name, begin, end in made
        ]
