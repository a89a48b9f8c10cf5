"""
Runs ranks on a node other than the trainer's, for groups on several nodes: `python -m hone_fsdp.node`.

    HONE_FSDP_TRAINER   host:port where the trainer accepts its nodes
    HONE_FSDP_NODE      number of this node, 1 to nodes - 1
    HONE_HTTP_HOST, HONE_HTTP_PORT   address of /livez and /readyz; without a port they are not served

It connects to the trainer, introduces itself, and starts and ends ranks on the trainer's orders. It reconnects when the connection ends.

N1  When the connection ends, every rank that was started over it is ended, because the trainer is gone or has given up this
    node. The next hello is sent when none of them is left.
N2  A trainer that sends nothing for a minute counts as gone. It sends a beat every few seconds, and so does this program.
N3  Ranks end with this process, even if it is killed. SIGTERM and SIGINT first end the ranks and then this process.
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

from hone_fsdp.facts import Facts
from hone_fsdp.nodes.health import Health
from hone_fsdp.nodes.ranks import Ranks
from hone_fsdp.wire import messages
from hone_fsdp.wire.frames import Frames

_BEAT_SECONDS = 5
_SILENCE_SECONDS = 60
_CONNECT_SECONDS = 10
# Pause between two tries to connect.
_PAUSE_SECONDS = 2

_WRONG_SETTING = 2


class Stopped(BaseException):
    """Raised in the main thread by a signal that ends this program."""


class Lost(Exception):  # noqa: N818  (an outcome, not a defect)
    """The trainer refused this node; the message says why."""


@dataclass(frozen=True)
class Settings:
    address: str
    port: int
    index: int
    http_host: str
    # 0 = no HTTP server
    http_port: int

    @staticmethod
    def read() -> "Settings":
        """Raises ValueError that names a wrong variable."""
        address, _, port = os.environ.get("HONE_FSDP_TRAINER", "").rpartition(":")
        if address == "" or not port.isdecimal():
            raise _wrong("HONE_FSDP_TRAINER", "host:port")
        return Settings(
            # An IPv6 address is in brackets.
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
        """Joins one group after another, until a signal ends this program."""
        said = ""
        while True:
            try:
                self._connect()
            except (OSError, EOFError, Lost) as error:
                text = f"no trainer at {self._settings.address}:{self._settings.port}: {error}"
                if text != said:  # Printed once for each reason.
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
    """Carries out the trainer's orders of one connection."""

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
        """Ends all ranks, and waits until none is left."""
        for ranks in self._groups.values():
            ranks.end()
        for ranks in self._groups.values():
            ranks.wait()

    def _start(self, order: Any) -> None:
        group = str(order.group)
        self._groups = {name: ranks for name, ranks in self._groups.items() if not ranks.is_over}
        _say(f"starting {order.ranks_per_node} ranks of group {group}")
        self._groups[group] = Ranks(
            order,
            self._settings.address,
            self._settings.index,
            lambda reason, lines: self._send_end(group, reason, lines),
        )

    def _end(self, group: str) -> None:
        ranks = self._groups.pop(group, None)
        if ranks is None:
            self._send_end(group, "this node has no such group", [])
        else:
            ranks.end()

    def _send_end(self, group: str, reason: str, lines: list[str]) -> None:
        _say(f"group {group}: {reason}")
        ended = messages.RanksEnded(group=group, reason=reason, lines=lines)
        # If the connection is gone, the trainer knows already.
        with suppress(OSError):
            self._frames.send(messages.NodeReport(ranks_ended=ended))


def main() -> int:
    # Done first: as process 1 of a container, this process receives only signals for which it has handlers.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    try:
        settings = Settings.read()
        health = None if settings.http_port == 0 else Health(settings.http_host, settings.http_port)
        facts = Facts.ask()
        _say(f"node {settings.index} with PyTorch {facts.version} and {facts.gpus} GPUs")
        Node(settings, facts, health).run()
    except Stopped:
        _say("stopped by a signal")
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
            # The main thread notices the end as well.
            return


def _stop(_number: int, _frame: FrameType | None) -> None:
    # Only the first signal counts; further ones must not interrupt the clean-up.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    raise Stopped


def _whole_number(name: str, minimum: int) -> int:
    text = os.environ.get(name, "")
    if not text.isdecimal() or int(text) < minimum:
        raise _wrong(name, f"a whole number that is {minimum} or more")
    return int(text)


def _wrong(name: str, allowed: str) -> ValueError:
    current = os.environ.get(name)
    found = "is not set" if current is None else f"is {current}"
    return ValueError(f"{name} {found}; it must be {allowed}")


def _say(text: str) -> None:
    print(f"hone_fsdp.node: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
