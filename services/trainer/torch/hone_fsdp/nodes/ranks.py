"""
The ranks of one group on this node, which a process of hone_fsdp.launch runs.

R1  The end is reported once, when no rank is left. Ranks hold the pipe of their output open, so its end is theirs. Other
    processes that hold it (a compiler's helpers) are waited for only a few seconds.
"""

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

# Last lines of the ranks' output, which the trainer's error quotes.
_LAST_LINES = 12
_END_SECONDS = 10


class Ranks:
    def __init__(self, order: Any, address: str, node: int, on_end: Callable[[str, list[str]], None]) -> None:
        """
        Starts the ranks. Must be called by the thread that lives longest, because they end with it.

        @param order the message StartRanks
        @param address address of the trainer, as this node reaches it
        @param on_end is called with the reason and the last lines, on another thread
        """
        self._lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._on_end = on_end
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "hone_fsdp.launch",
                f"--ranks={order.ranks_per_node}",
                f"--nodes={order.nodes}",
                f"--node={node}",
                f"--address={address}",
                f"--port={order.port}",
                f"--group={order.group}",
                f"--seconds={order.start_seconds}",
            ],
            env={
                "OMP_NUM_THREADS": str(order.threads_per_rank),
                **os.environ,
                "PYTHONUNBUFFERED": "1",
                "HONE_FSDP_DEVICE": order.device,
                "HONE_FSDP_COLLECTIVE_SECONDS": str(order.collective_seconds),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read, name="hone-ranks-output", daemon=True)
        self._reader.start()
        self._waiter = threading.Thread(target=self._wait, name="hone-ranks-end", daemon=True)
        self._waiter.start()

    @property
    def is_over(self) -> bool:
        return not self._waiter.is_alive()

    def end(self) -> None:
        """Ends the ranks at once, by killing the process that started them."""
        self._process.kill()

    def wait(self) -> None:
        """Waits until the end was reported."""
        self._waiter.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            print(line, end="", flush=True)
            self._lines.append(line.rstrip("\n"))

    def _wait(self) -> None:
        code = self._process.wait()
        self._reader.join(_END_SECONDS)  # R1
        reason = f"torchrun ended with code {code}" if code >= 0 else f"torchrun was ended by signal {-code}"
        self._on_end(reason, list(self._lines))
