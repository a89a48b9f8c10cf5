"""
The optimizer's state as a sharded checkpoint (torch.distributed.checkpoint): each rank writes its shards, and a group of
any size reads them.

    optimizer/.metadata            the positions of tensors, and the number of updates
    optimizer/__<rank>_<n>.distcp  moments `m.<parameter>` and `v.<parameter>`, float32

PyTorch does not promise to read the files of another version, so a run must keep its version of PyTorch.
"""

from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from hone_fsdp.errors import Refused, from_os_error
from hone_fsdp.parallel.group import Group
from hone_fsdp.update.optimizer import AdamW

_UPDATES = "updates"


def save_moments(folder: str, optimizer: AdamW, group: Group) -> int:
    """@returns bytes written, on every rank."""
    updates, first, second = optimizer.moments()
    state: dict[str, Any] = {_UPDATES: torch.tensor(updates, dtype=torch.int64)}
    state |= {f"m.{name}": tensor for name, tensor in first.items()}
    state |= {f"v.{name}": tensor for name, tensor in second.items()}
    try:
        save(state, checkpoint_id=folder, process_group=group.control)
    except CheckpointException as error:
        raise _refused("write", folder, error) from error
    written = sum(file.stat().st_size for file in Path(folder).iterdir()) if group.is_first else 0
    return int(group.share(written))


def load_moments(folder: str, optimizer: AdamW, group: Group) -> None:
    names = list(optimizer.parameters)
    first = {name: torch.zeros_like(optimizer.parameters[name]) for name in names}
    second = {name: torch.zeros_like(optimizer.parameters[name]) for name in names}
    updates = torch.zeros((), dtype=torch.int64)
    state: dict[str, Any] = {_UPDATES: updates}
    state |= {f"m.{name}": tensor for name, tensor in first.items()}
    state |= {f"v.{name}": tensor for name, tensor in second.items()}
    try:
        load(state, checkpoint_id=folder, process_group=group.control)
    except CheckpointException as error:
        raise _refused("read", folder, error) from error
    optimizer.resume(int(updates), first, second)


def _refused(verb: str, folder: str, error: CheckpointException) -> Refused:
    """Every rank has the failures of all ranks."""
    causes = [cause[0] if isinstance(cause, tuple) else cause for cause in error.failures.values()]
    for cause in causes:
        if isinstance(cause, OSError):
            return from_os_error(f"{verb} {folder}", cause)
    return Refused("CHECKPOINT", f"PyTorch cannot {verb} the optimizer's state in {folder}: {causes[0]}")
