"""Ends a process with the one that started it, however that ends."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
# Holds the id of torchrun's process, with which ranks end.
PARENT_VARIABLE = "HONE_FSDP_PARENT"


def die_with(parent: int) -> None:
    """
    On Linux, lets the kernel kill this process when its parent ends, and exits if the parent is already gone.

    @param parent the parent's id; after its death this process has another parent
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
