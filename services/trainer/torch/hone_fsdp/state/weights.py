"""
Reads tensors from files into shards, and writes shards to files. The call says where each tensor is in a file, and what a
file's header is: the trainer reads and writes headers (libs/checkpoint/src/safetensors/header.ts), the workers the numbers.
"""

import hashlib
import math
import mmap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

from hone_fsdp.errors import Refused, bad_input, from_os_error
from hone_fsdp.parallel.group import Group
from hone_fsdp.wire import messages

_TYPES = {
    messages.FLOAT32: torch.float32,
    messages.FLOAT16: torch.float16,
    messages.BFLOAT16: torch.bfloat16,
}


def read_shards(stored: Iterable[Any], wanted: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """
    Reads the rows of each tensor that this rank holds, as float32.

    @param stored messages StoredTensor; each must be of a wanted parameter and have its shape
    """
    with _Files() as files:
        for each in stored:
            parameter = wanted.get(each.name)
            if parameter is None or tuple(each.shape) != tuple(parameter.shape):
                found = "not a parameter of the model"
                if parameter is not None:
                    found = f"of shape {tuple(parameter.shape)} in the model"
                raise bad_input(f"the file's {each.name} of shape {tuple(each.shape)} is {found}")
            first, count = _rows_of(parameter)
            rows = files.rows(each, first, count)
            if each.HasField("merged"):
                low = files.rows(each.merged.b, first, count)
                rows = rows + each.merged.factor * (
                    low @ files.rows(each.merged.a, 0, each.merged.a.shape[0])
                )
            yield each.name, rows


def write_files(
    files: Iterable[Any], parameters: Mapping[str, Tensor], group: Group
) -> list[tuple[str, int]]:
    """
    Writes files one after the other, each tensor gathered by all ranks and written by the first one.

    @param files messages WeightFile
    @returns digest and size of each, on every rank.
    """
    written: list[tuple[str, int]] = []
    failure: Refused | None = None
    for file in files:
        writer = _Writer(file.path, file.head) if group.is_first else None
        for each in file.tensors:
            whole = _gather(parameters[each.name], group)
            if writer is not None:
                writer.add(whole.to(_TYPES[each.type]))
        if writer is not None:
            failure = failure or writer.close()
            written.append((writer.digest, writer.bytes))
    # Only the first rank knows the outcome.
    outcome = group.share((written, None if failure is None else (failure.code, failure.message)))
    if outcome[1] is not None:
        raise Refused(*outcome[1])
    return outcome[0]


def local_of(parameter: Tensor) -> Tensor:
    """The local rows of a tensor, without a copy."""
    return parameter.to_local() if isinstance(parameter, DTensor) else parameter


def _rows_of(parameter: Tensor) -> tuple[int, int]:
    """The first row that this rank holds, and the number of rows."""
    if not isinstance(parameter, DTensor):
        return 0, parameter.shape[0]
    shape, offset = compute_local_shape_and_global_offset(
        parameter.shape, parameter.device_mesh, parameter.placements
    )
    return (offset[0], shape[0]) if math.prod(shape) > 0 else (0, 0)


def _gather(parameter: Tensor, group: Group) -> Tensor:
    """Gathers a whole tensor in host memory. Called for one tensor at a time, so that a model need not fit into one device."""
    with torch.no_grad():
        if isinstance(parameter, DTensor):
            # Offloaded shards are in host memory, which the collectives of devices cannot read.
            local = parameter.to_local().to(group.device)
            parameter = DTensor.from_local(
                local,
                parameter.device_mesh,
                parameter.placements,
                run_check=False,
                shape=parameter.shape,
                stride=parameter.stride(),
            ).full_tensor()
        return parameter.detach().cpu().contiguous()


class _Files:
    """Files of tensors, mapped into memory while they are read."""

    def __init__(self) -> None:
        self._mapped: dict[str, mmap.mmap] = {}

    def __enter__(self) -> "_Files":
        return self

    def __exit__(self, *_: object) -> None:
        # A map lives as long as a tensor views it, at most until the caller has copied it.
        self._mapped.clear()

    def rows(self, stored: Any, first: int, count: int) -> Tensor:
        """Rows of a tensor, float32."""
        dtype = _TYPES[stored.type]
        width = math.prod(stored.shape[1:])
        if count * width == 0:
            return torch.empty((count, *stored.shape[1:]), dtype=torch.float32)
        mapped = self._mapped.get(stored.file)
        if mapped is None:
            with open(stored.file, "rb") as file:
                # A private map, because PyTorch requires writable memory; nothing is written to it.
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            self._mapped[stored.file] = mapped
        flat = torch.frombuffer(
            mapped, dtype=dtype, count=count * width, offset=stored.offset + first * width * dtype.itemsize
        )
        return flat.view(count, *stored.shape[1:]).float()


class _Writer:
    """Writes a file and computes its digest. After a failure it ignores further tensors, so that ranks stay in step."""

    def __init__(self, path: str, head: bytes) -> None:
        self._path = path
        self._hash = hashlib.sha256()
        self._failure: OSError | None = None
        self._file: BinaryIO | None = None
        self.bytes = 0
        self._guarded(lambda: self._open(head))

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def add(self, tensor: Tensor) -> None:
        self._guarded(lambda: self._write(tensor.flatten().view(torch.uint8).numpy().data))

    def close(self) -> Refused | None:
        if self._file is not None:
            self._guarded(self._file.close)
        return None if self._failure is None else from_os_error(f"write {self._path}", self._failure)

    def _open(self, head: bytes) -> None:
        self._file = open(self._path, "wb")  # noqa: SIM115  (closed by close)
        self._write(head)

    def _write(self, data: bytes | memoryview) -> None:
        assert self._file is not None
        self._hash.update(data)
        self._file.write(data)
        self.bytes += len(data)

    def _guarded(self, act: Any) -> None:
        if self._failure is not None:
            return
        try:
            act()
        except OSError as error:
            self._failure = error
