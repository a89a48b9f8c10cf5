"""Processes that end with whoever started them, however that ended."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
# The process that ranks end with: torchrun.
PARENT_VARIABLE = "HONE_FSDP_PARENT"


def die_with(parent: int) -> None:
    """
    Where the system can tell, this process is killed when its parent ends, and ends now where that is gone already.

    @param parent the id that it must have; whoever takes in orphans has another one
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
