"""
The socket between the trainer and the first rank.

C1  A separate thread reads calls, so that the end of the connection is noticed while a call is computed. The trainer is then
    gone or has given up the group, and nobody needs the result: the process ends at once, and torchrun ends the others.
"""

import os
import queue
import socket
import threading
from typing import Any

from hone_fsdp.wire.frames import Frames
from hone_fsdp.wire.messages import WorkerCall

# Exit code when the trainer is gone. It is not 0, so that torchrun ends the other ranks.
EXIT_ABANDONED = 3
_CONNECT_SECONDS = 30


class Channel:
    def __init__(self, path: str) -> None:
        """Connects. Raises OSError if there is no trainer."""
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stream.settimeout(_CONNECT_SECONDS)
        stream.connect(path)
        stream.settimeout(None)
        self._frames = Frames(stream)
        # Only one call is open at a time, so with two places the thread can read on and notice the end.
        self._calls: queue.Queue[bytes] = queue.Queue(maxsize=2)
        threading.Thread(target=self._read, name="hone-channel", daemon=True).start()

    def receive(self) -> bytes:
        """Waits for the next call without a time limit, as a run may wait long for its rollouts (C1 ends the wait)."""
        return self._calls.get()

    def send(self, answer: Any) -> None:
        self._frames.send(answer)

    def _read(self) -> None:
        try:
            while True:
                self._calls.put(self._frames.receive())
        except (OSError, EOFError):
            os._exit(EXIT_ABANDONED)  # C1


def number_of(call: bytes) -> int:
    """The number of a call, which its answer repeats."""
    return int(WorkerCall.FromString(call).number)
