"""
Finds the version of PyTorch and the GPUs: `python -m hone_fsdp.facts` prints {"version", "gpus"} as JSON, and fails with the
name of a missing package. It runs in a separate process, because importing PyTorch costs seconds and memory.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass

# Enough to import PyTorch from a cold disk.
_DEADLINE_SECONDS = 600


@dataclass(frozen=True)
class Facts:
    version: str
    # 0 = none
    gpus: int

    @staticmethod
    def ask() -> "Facts":
        """The facts of this interpreter. Raises subprocess.SubprocessError if PyTorch cannot be imported."""
        ran = subprocess.run(
            [sys.executable, "-m", "hone_fsdp.facts"],
            env=dict(os.environ),
            stdout=subprocess.PIPE,
            check=True,
            timeout=_DEADLINE_SECONDS,
        )
        return Facts(**json.loads(ran.stdout))


def _print() -> None:
    import numpy  # noqa: F401  (checks that it is installed)
    import torch
    from google.protobuf import message  # noqa: F401

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    print(json.dumps({"version": str(torch.__version__), "gpus": gpus}))


if __name__ == "__main__":
    _print()
