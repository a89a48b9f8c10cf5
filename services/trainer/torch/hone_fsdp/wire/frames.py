"""Messages on a stream, each preceded by its length (uint32, little-endian), as proto/hone/training/v1 says."""

import socket
import struct
import threading
from typing import Any

_LENGTH = struct.Struct("<I")


class Frames:
    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        # Keeps the messages of several threads apart.
        self._sending = threading.Lock()

    def send(self, message: Any) -> None:
        """Sends a message. Raises OSError if the connection is gone."""
        data = message.SerializeToString()
        with self._sending:
            self._stream.sendall(_LENGTH.pack(len(data)))
            self._stream.sendall(data)

    def receive(self) -> bytes:
        """Receives a message. Raises EOFError at the end of the stream, and OSError if the connection fails or times out."""
        (length,) = _LENGTH.unpack(self._take(_LENGTH.size))
        return self._take(length)

    def _take(self, count: int) -> bytes:
        data = bytearray(count)
        view = memoryview(data)
        while view.nbytes > 0:
            got = self._stream.recv_into(view)
            if got == 0:
                raise EOFError("the other side closed the connection")
            view = view[got:]
        return bytes(data)
