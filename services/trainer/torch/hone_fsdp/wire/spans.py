"""
Records the phases of a call on a rank, for the trace of the caller.

A traced call carries its caller's context. Each rank then records its phases, and the answer contains them. The trainer makes
spans of them, so a rank needs no exporter and no network. In a call without a context, a phase costs nothing.

Times are measured on the host: on a GPU a phase ends when its work is queued, and waiting appears where a result is read.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hone_fsdp.parallel.group import Group
from hone_fsdp.wire import messages


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
        """The spans of all ranks, on the first rank. Must be called on every rank."""
        if self._made is None:
            return []
        gathered = self._group.gather(self._made)
        return [
            messages.WorkerSpan(name=name, rank=rank, begin_unix_ns=begin, end_unix_ns=end)
            for rank, made in enumerate(gathered or [])
            for name, begin, end in made
        ]
