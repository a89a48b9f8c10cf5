"""The follower's side of a worker: a process that writes one run (S2). Requests and answers are JSON, one to a line."""

import asyncio
import json
import sys
from typing import Any

from .errors import WorkerError

# Opening asks the system over the network what it has; W&B itself waits for up to 90 seconds.
OPEN_DEADLINE_S = 180
WRITE_DEADLINE_S = 60
# Ending waits until everything is uploaded.
END_DEADLINE_S = 600
# An event's settings may have a megabyte.
_MAX_LINE = 64 * 1024 * 1024


class WorkerProcess:
    """Every method raises WorkerError when the worker fails, dies or takes too long; it is of no use then."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, backend: str, request: dict[str, Any]) -> "WorkerProcess":
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "hone_sinks.worker",
            backend,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_MAX_LINE,
        )
        worker = cls(process)
        try:
            await worker.ask({"do": "open", **request}, OPEN_DEADLINE_S)
        except BaseException:
            await worker.kill()
            raise
        return worker

    async def ask(self, request: dict[str, Any], deadline_s: float) -> None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            async with asyncio.timeout(deadline_s):
                stdin.write(json.dumps(request).encode() + b"\n")
                await stdin.drain()
                line = await stdout.readline()
        except TimeoutError as error:
            raise WorkerError(f"its worker did not answer within {deadline_s:g} seconds") from error
        except (ConnectionError, ValueError) as error:
            raise WorkerError(f"its worker is gone: {error}") from error
        if not line:
            raise WorkerError("its worker ended")
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
