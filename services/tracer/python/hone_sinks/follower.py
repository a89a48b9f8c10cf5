"""Follows the stream for one system and hands each run's events to a worker of its own (S1 to S4)."""

import asyncio
import fcntl
import logging
from pathlib import Path
from typing import Any

from .bus import EventsStream
from .errors import BusError, WorkerError
from .events import Event, decode_event
from .position import Position
from .worker_process import END_DEADLINE_S, WRITE_DEADLINE_S, WorkerProcess

# New events are looked for this often; curves need no more.
_LOOK_EVERY_S = 1.0
# A failed system is tried again after pauses that grow to this.
_MAX_PAUSE_S = 30.0
# Runs that are written at the same time; of more, the one that was written longest ago is closed and opened again later.
_MAX_WORKERS = 16
# Positions are saved at least this often while many events are read; what was read twice is not written twice.
_SAVE_EVERY = 64
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"


class Follower:
    """Writes all runs to one system."""

    def __init__(self, backend: str, folder: Path, project: str, stream: EventsStream) -> None:
        self._backend = backend
        self._folder = folder / backend
        self._project = project
        self._stream = stream
        self._log = logging.getLogger(f"hone_sinks.{backend}")
        self._workers: dict[str, WorkerProcess] = {}
        self._read_since_save = 0

    async def run(self) -> None:
        """Follows until it is cancelled."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "lock").open("w") as lock:
            await self._hold(lock)
            position = Position.load(self._folder / "position.json")
            pause = 1.0
            try:
                while True:
                    try:
                        await self._follow(position)
                        pause = 1.0
                    except (WorkerError, BusError) as error:
                        self._log.warning("%s; it is tried again in %g s", error, pause)
                        await asyncio.sleep(pause)
                        pause = min(pause * 2, _MAX_PAUSE_S)
            finally:
                await self._close_all()

    async def _hold(self, lock: Any) -> None:
        """Waits for another program that follows with the same folder, such as the one that this one replaces."""
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                await asyncio.sleep(_LOOK_EVERY_S)

    async def _follow(self, position: Position) -> None:
        """Reads events until none is left, then pauses. Raises when the system or the bus fails; nothing is lost by that."""
        for run in list(position.open):
            if run not in self._workers:
                await self._open(position, run)  # from before a restart or a failure
        message = await self._stream.next(position.next)
        if message is None:
            if await self._stream.last_sequence() < position.next - 1:
                self._log.warning("the stream of events was started over; it is read from its beginning")
                position.next = 1
            self._save(position, force=True)
            await asyncio.sleep(_LOOK_EVERY_S)
            return
        event = decode_event(message.subject, message.sequence, message.data)
        if event is not None:
            await self._take(position, event)
        position.next = message.sequence + 1
        self._save(position, force=event is not None and event.kind != "points")

    def _save(self, position: Position, *, force: bool) -> None:
        self._read_since_save += 1
        if force or self._read_since_save >= _SAVE_EVERY:
            position.save()
            self._read_since_save = 0

    async def _take(self, position: Position, event: Event) -> None:
        run = event.run
        if event.kind == "accepted":
            # A bus that lost its data gives the ids of runs again; the time of acceptance tells such runs apart.
            identity = f"{run}-{_base36(event.time_ms)}"
            if position.open.get(run) not in (None, identity):
                await self._end(position, run, "failed")
            position.open[run] = identity
        elif run not in position.open:
            position.open[run] = await self._identity(run)
        if run not in self._workers:
            await self._open(position, run, until=event.sequence)
        if event.kind == "ended":
            await self._end(position, run, event.phase)
        elif event.points is not None:
            await self._write(run, event)

    async def _identity(self, run: str) -> str:
        first = await self._stream.next(1, run)
        event = first and decode_event(first.subject, first.sequence, first.data)
        return f"{run}-{_base36(event.time_ms)}" if event and event.kind == "accepted" else run

    async def _open(self, position: Position, run: str, until: int | None = None) -> None:
        """Starts a run's worker and gives it the run's events before `until`, by default before the next one (S3)."""
        while len(self._workers) >= _MAX_WORKERS:
            await self._close(next(iter(self._workers)))
        end = position.next if until is None else until
        config, began_ms = "{}", 0
        first = await self._stream.next(1, run)
        event = first and decode_event(first.subject, first.sequence, first.data)
        if event:
            config, began_ms = event.config_json or "{}", event.time_ms
        worker = await WorkerProcess.start(
            self._backend,
            {
                "run": run,
                "identity": position.open[run],
                "project": self._project,
                "folder": str(self._folder),
                "config": config,
                "began_ms": began_ms,
            },
        )
        self._workers[run] = worker
        at = 1
        while (message := await self._stream.next(at, run)) is not None and message.sequence < end:
            event = decode_event(message.subject, message.sequence, message.data)
            if event is not None and event.points is not None:
                await self._write(run, event)
            at = message.sequence + 1

    async def _write(self, run: str, event: Event) -> None:
        assert event.points is not None
        worker = self._workers.pop(run)
        try:
            await worker.ask(
                {
                    "do": "write",
                    "sequence": event.sequence,
                    "time_ms": event.time_ms,
                    "series": event.points.series,
                    "step": event.points.step,
                    "values": event.points.values,
                },
                WRITE_DEADLINE_S,
            )
        except BaseException:
            await worker.kill()
            raise
        self._workers[run] = worker  # as the one that was written last

    async def _end(self, position: Position, run: str, phase: str) -> None:
        worker = self._workers.pop(run, None)
        if worker is not None:
            try:
                await worker.ask({"do": "end", "phase": phase}, END_DEADLINE_S)
            finally:
                await worker.kill()
        del position.open[run]

    async def _close(self, run: str) -> None:
        """Ends a worker whose run goes on."""
        worker = self._workers.pop(run)
        try:
            await worker.ask({"do": "close"}, WRITE_DEADLINE_S)
        finally:
            await worker.kill()

    async def _close_all(self) -> None:
        for run in list(self._workers):
            try:
                await self._close(run)
            except WorkerError as error:
                self._log.warning("run %s: %s", run, error)


def _base36(number: int) -> str:
    digits = ""
    while number > 0:
        number, digit = divmod(number, 36)
        digits = _BASE36[digit] + digits
    return digits or "0"
