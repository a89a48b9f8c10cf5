"""
The socket between the trainer and the first rank: messages, each preceded by its length (uint32, little-endian).

C1  Calls are read by a thread of their own, so that the end of the connection is seen while a call is computed: the
    trainer is gone, or has given the group up. Nothing that is computed now has a reader: the process ends at once,
    and torchrun ends the others.
"""

import os
import queue
import socket
import struct
import threading
from typing import Any

from hone_fsdp.messages import WorkerCall

# The trainer is gone: no failure of this process, but torchrun must end the other ranks.
EXIT_ABANDONED = 3
_LENGTH = struct.Struct("<I")
_CONNECT_SECONDS = 30


class Channel:
    def __init__(self, path: str) -> None:
        """Connects. Raises OSError where nobody listens."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_CONNECT_SECONDS)
        self._socket.connect(path)
        self._socket.settimeout(None)
        # One call is open at a time, so two places are enough to see the end behind it.
        self._calls: queue.Queue[bytes] = queue.Queue(maxsize=2)
        threading.Thread(target=self._read, name="hone-channel", daemon=True).start()

    def receive(self) -> bytes:
        """The next call; waits for it without end, as a run waits for its rollouts (C1 ends the wait)."""
        return self._calls.get()

    def send(self, answer: Any) -> None:
        data = answer.SerializeToString()
        self._socket.sendall(_LENGTH.pack(len(data)))
        self._socket.sendall(data)

    def _read(self) -> None:
        try:
            while True:
                (length,) = _LENGTH.unpack(self._take(_LENGTH.size))
                self._calls.put(self._take(length))
        except (OSError, EOFError):
            os._exit(EXIT_ABANDONED)  # C1

    def _take(self, count: int) -> bytes:
        data = bytearray(count)
        view = memoryview(data)
        while view.nbytes > 0:
            got = self._socket.recv_into(view)
            if got == 0:
                raise EOFError
            view = view[got:]
        return bytes(data)


def number_of(call: bytes) -> int:
    """The number of a call, for the answer to it."""
    return int(WorkerCall.FromString(call).number)
