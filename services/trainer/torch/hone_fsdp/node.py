"""
A node beside the trainer's own, for runs whose ranks spread over several: `python -m hone_fsdp.node`.

    HONE_FSDP_TRAINER   host:port where the trainer waits for its nodes
    HONE_FSDP_NODE      which node this is: 1 to nodes - 1
    HONE_HTTP_HOST, HONE_HTTP_PORT   where /livez and /readyz answer; without a port nowhere

It connects, says what it is, and starts and ends ranks as it is told. When the connection ends, it comes again.

N1  The connection's end ends every rank that was started over it: the trainer is gone, or has taken this node for gone.
    Hello is said when none of them is left.
N2  A trainer that says nothing for a minute is gone: it sends a beat every few seconds, and so does this program.
N3  Ranks end with this process, however that ends. SIGTERM and SIGINT end it once they are gone.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

from hone_fsdp import messages
from hone_fsdp.facts import Facts
from hone_fsdp.frames import Frames
from hone_fsdp.health import Health
from hone_fsdp.ranks import Ranks

_BEAT_SECONDS = 5
_SILENCE_SECONDS = 60
_CONNECT_SECONDS = 10
# Between two tries to connect.
_PAUSE_SECONDS = 2

_WRONG_SETTING = 2


class Stopped(BaseException):
    """A signal said so; raised on the main thread, wherever that is."""


class Lost(Exception):  # noqa: N818  (an outcome, not a defect)
    """The trainer let this node go, and why."""


@dataclass(frozen=True)
class Settings:
    address: str
    port: int
    index: int
    http_host: str
    # 0 = no answers
    http_port: int

    @staticmethod
    def read() -> "Settings":
        """Raises ValueError with the variable that is wrong."""
        address, _, port = os.environ.get("HONE_FSDP_TRAINER", "").rpartition(":")
        if address == "" or not port.isdecimal():
            raise _wrong("HONE_FSDP_TRAINER", "host:port")
        return Settings(
            # An IPv6 address stands in brackets.
            address=address.strip("[]"),
            port=int(port),
            index=_whole_number("HONE_FSDP_NODE", 1),
            http_host=os.environ.get("HONE_HTTP_HOST", "127.0.0.1"),
            http_port=_whole_number("HONE_HTTP_PORT", 0) if os.environ.get("HONE_HTTP_PORT") else 0,
        )


class Node:
    def __init__(self, settings: Settings, facts: Facts, health: Health | None) -> None:
        self._settings = settings
        self._facts = facts
        self._health = health

    def run(self) -> None:
        """Takes part in one group after the other, until a signal ends it."""
        said = ""
        while True:
            try:
                self._connect()
            except (OSError, EOFError, Lost) as error:
                text = f"no trainer at {self._settings.address}:{self._settings.port}: {error}"
                if text != said:  # Once, however long it is away.
                    _say(text)
                said = text
            self._turn(is_ready=False)
            time.sleep(_PAUSE_SECONDS)

    def _connect(self) -> None:
        place = (self._settings.address, self._settings.port)
        with socket.create_connection(place, timeout=_CONNECT_SECONDS) as stream:
            stream.settimeout(_SILENCE_SECONDS)  # N2
            frames = Frames(stream)
            hello = messages.NodeHello(
                index=self._settings.index, torch_version=self._facts.version, gpus=self._facts.gpus
            )
            frames.send(messages.NodeReport(hello=hello))
            closed = threading.Event()
            threading.Thread(target=_beat, args=(frames, closed), name="hone-beat", daemon=True).start()
            session = _Session(frames, self._settings)
            try:
                while True:
                    order = messages.NodeOrder.FromString(frames.receive())
                    self._turn(is_ready=True)
                    session.follow(order)
            finally:
                closed.set()
                session.end()  # N1

    def _turn(self, is_ready: bool) -> None:
        if self._health is not None:
            self._health.is_ready = is_ready
            self._health.turn()


class _Session:
    """What the trainer orders over one connection."""

    def __init__(self, frames: Frames, settings: Settings) -> None:
        self._frames = frames
        self._settings = settings
        self._groups: dict[str, Ranks] = {}

    def follow(self, order: Any) -> None:
        """@param order the message NodeOrder"""
        kind = order.WhichOneof("kind")
        if kind == "start_ranks":
            self._start(order.start_ranks)
        elif kind == "end_ranks":
            self._end(order.end_ranks.group)
        elif kind == "refused":
            raise Lost(order.refused.reason)

    def end(self) -> None:
        """Ends every rank, and waits until none is left."""
        for ranks in self._groups.values():
            ranks.end()
        for ranks in self._groups.values():
            ranks.wait()

    def _start(self, order: Any) -> None:
        group = str(order.group)
        self._groups = {name: ranks for name, ranks in self._groups.items() if not ranks.is_over}
        _say(f"starts {order.ranks_per_node} ranks of group {group}")
        self._groups[group] = Ranks(
            order,
            self._settings.address,
            self._settings.index,
            lambda reason, lines: self._tell_end(group, reason, lines),
        )

    def _end(self, group: str) -> None:
        ranks = self._groups.pop(group, None)
        if ranks is None:
            self._tell_end(group, "there is no such group", [])
        else:
            ranks.end()

    def _tell_end(self, group: str, reason: str, lines: list[str]) -> None:
        _say(f"group {group}: {reason}")
        ended = messages.RanksEnded(group=group, reason=reason, lines=lines)
        # Where the connection is gone, that says the same.
        with suppress(OSError):
            self._frames.send(messages.NodeReport(ranks_ended=ended))


def main() -> int:
    # First of all: as the first process of a container this one is told of no signal that it has no handler for.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    try:
        settings = Settings.read()
        health = None if settings.http_port == 0 else Health(settings.http_host, settings.http_port)
        facts = Facts.ask()
        _say(f"node {settings.index} with PyTorch {facts.version} and {facts.gpus} GPUs")
        Node(settings, facts, health).run()
    except Stopped:
        _say("ended by a signal")
        return 0
    except (ValueError, OSError, subprocess.SubprocessError) as error:
        _say(str(error))
    return _WRONG_SETTING


def _beat(frames: Frames, closed: threading.Event) -> None:
    beat = messages.NodeReport(beat=messages.Beat())
    while not closed.wait(_BEAT_SECONDS):
        try:
            frames.send(beat)
        except OSError:
            # The main thread sees the end too.
            return


def _stop(_number: int, _frame: FrameType | None) -> None:
    # Once: the rest is done whatever else arrives.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    raise Stopped


def _whole_number(name: str, minimum: int) -> int:
    text = os.environ.get(name, "")
    if not text.isdecimal() or int(text) < minimum:
        raise _wrong(name, f"a whole number from {minimum} on")
    return int(text)


def _wrong(name: str, allowed: str) -> ValueError:
    current = os.environ.get(name, "nothing")
    return ValueError(f"Cannot start the node as {name} must be {allowed}: current value is {current}")


def _say(text: str) -> None:
    print(f"hone_fsdp.node: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
