"""
The socket between the trainer and the first rank.

C1  Calls are read by a thread of their own, so that the end of the connection is seen while a call is computed: the
    trainer is gone, or has given the group up. Nothing that is computed now has a reader: the process ends at once,
    and torchrun ends the others.
"""

import os
import queue
import socket
import threading
from typing import Any

from hone_fsdp.frames import Frames
from hone_fsdp.messages import WorkerCall

# The trainer is gone: no failure of this process, but torchrun must end the other ranks.
EXIT_ABANDONED = 3
_CONNECT_SECONDS = 30


class Channel:
    def __init__(self, path: str) -> None:
        """Connects. Raises OSError where nobody listens."""
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stream.settimeout(_CONNECT_SECONDS)
        stream.connect(path)
        stream.settimeout(None)
        self._frames = Frames(stream)
        # One call is open at a time, so two places are enough to see the end behind it.
        self._calls: queue.Queue[bytes] = queue.Queue(maxsize=2)
        threading.Thread(target=self._read, name="hone-channel", daemon=True).start()

    def receive(self) -> bytes:
        """The next call; waits for it without end, as a run waits for its rollouts (C1 ends the wait)."""
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
    """The number of a call, for the answer to it."""
    return int(WorkerCall.FromString(call).number)
