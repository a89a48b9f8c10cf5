"""
The ranks of a group, and what they exchange besides gradients.

G1  Small values go over `control`, a gloo group in host memory, on any device.
G2  Ranks wait for the next call without a time limit, over `idle`, because rollouts may take any time. Collectives within a
    call have the limit `timeout`, so that a rank that hangs ends the group.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from hone_fsdp.errors import Refused, from_os_error

# G2. Gloo has no infinite timeout; after a month without a call the run must be forgotten.
_IDLE = timedelta(days=30)
FIRST_RANK = 0


@dataclass(frozen=True)
class Group:
    rank: int
    size: int
    device: torch.device
    mesh: DeviceMesh
    # G1: for exchanges within a call
    control: Any
    # G2: for waiting for calls
    idle: Any

    @property
    def is_first(self) -> bool:
        return self.rank == FIRST_RANK

    @staticmethod
    def join(device_type: str, timeout: timedelta) -> "Group":
        """Joins the group that torchrun describes in the environment. @param device_type cpu or cuda"""
        local_rank = int(os.environ["LOCAL_RANK"])
        device = torch.device(device_type, local_rank) if device_type == "cuda" else torch.device("cpu")
        if device.type == "cuda":
            torch.cuda.set_device(device)
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(backend, timeout=timeout)
        size = dist.get_world_size()
        return Group(
            rank=dist.get_rank(),
            size=size,
            device=device,
            # Without a mesh, fully_shard would use any accelerator of the host.
            mesh=init_device_mesh(device.type, (size,)),
            control=dist.new_group(backend="gloo", timeout=timeout),
            idle=dist.new_group(backend="gloo", timeout=_IDLE),
        )

    def share_call(self, call: bytes | None) -> bytes:
        """Gives the first rank's call to every rank."""
        length = torch.tensor([0 if call is None else len(call)], dtype=torch.int64)
        dist.broadcast(length, FIRST_RANK, group=self.idle)
        data = (
            torch.empty(int(length), dtype=torch.uint8)
            if call is None
            else torch.frombuffer(bytearray(call), dtype=torch.uint8)
        )
        dist.broadcast(data, FIRST_RANK, group=self.control)
        return data.numpy().tobytes() if call is None else call

    def sum(self, values: list[float]) -> list[float]:
        """Sums over the ranks in float64; the same bits on every rank."""
        total = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(total, group=self.control)
        return [float(value) for value in total]

    def gather(self, value: Any) -> list[Any] | None:
        """The values of all ranks, in their order, on the first rank; None on the others."""
        found: list[Any] | None = [None] * self.size if self.is_first else None
        dist.gather_object(value, found, FIRST_RANK, group=self.control)
        return found

    def share(self, value: Any) -> Any:
        """Gives the first rank's value to every rank."""
        shared = [value]
        dist.broadcast_object_list(shared, FIRST_RANK, group=self.control)
        return shared[0]

    @contextmanager
    def agreeing(self, action: str) -> Iterator[None]:
        """If the body is refused on one rank, it is refused on all. The body must not wait for other ranks."""
        failure: Refused | None = None
        try:
            yield
        except Refused as error:
            failure = error
        except OSError as error:
            failure = from_os_error(action, error)
        outcomes: list[tuple[str, str] | None] = [None] * self.size
        dist.all_gather_object(
            outcomes, None if failure is None else (failure.code, failure.message), group=self.control
        )
        for outcome in outcomes:
            if outcome is not None:
                raise Refused(*outcome)
