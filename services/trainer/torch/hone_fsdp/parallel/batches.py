"""
Turns microbatches into tensors, and distributes them over ranks.

Letters: B rows, T tokens of a row, U positions, E entries.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from hone_fsdp.model.attention import FLEX_BLOCK
from hone_fsdp.model.head import HeadEntries
from hone_fsdp.parallel.group import Group
from hone_fsdp.update.objective import Numbers


@dataclass(frozen=True)
class Batch:
    # Index among the call's microbatches; None = an idle pass, which has no effect.
    index: int | None
    # int64 [B, T]
    token_ids: Tensor
    position_ids: Tensor
    visible_end: Tensor
    entries: HeadEntries
    numbers: Numbers | None


def share_out(
    microbatches: Sequence[Any], temperature: float, group: Group, *, has_squares: bool = False
) -> list[Batch]:
    """
    This rank's microbatches, dealt out in turns. Every rank must make the same number of passes, since each pass gathers
    weights from all ranks; a rank without a microbatch left makes a pass over one token that has no effect.
    """
    rounds = -(-len(microbatches) // group.size)
    mine = range(group.rank, rounds * group.size, group.size)
    return [
        _batch(i, microbatches[i], temperature, group.device, has_squares)
        if i < len(microbatches)
        else _idle(group.device)
        for i in mine
    ]


def _batch(index: int, message: Any, temperature: float, device: torch.device, has_squares: bool) -> Batch:
    shape = (message.row_count, message.row_tokens)
    tokens, places, ends = (
        _integers(field).view(shape)
        for field in (message.token_ids, message.position_ids, message.visible_end)
    )
    padding = -message.row_tokens % FLEX_BLOCK if device.type == "cuda" else 0
    positions = _integers(message.positions)
    if padding > 0:
        # A padding token attends only to itself.
        own = torch.arange(message.row_tokens, message.row_tokens + padding) + 1
        tokens, places = (F.pad(each, (0, padding)) for each in (tokens, places))
        ends = torch.cat([ends, own.expand(message.row_count, padding)], dim=1)
        positions += positions // message.row_tokens * padding
    numbers = message.numbers if message.HasField("numbers") else None
    has_bonus = numbers is not None and len(numbers.entropy_weight) > 0
    entries = HeadEntries(
        positions.to(device),
        _integers(message.entry_position).to(device),
        _integers(message.entry_target).to(device),
        temperature,
        differentiates_entropy=has_bonus,
        has_squares=has_squares,
    )
    return Batch(
        index,
        tokens.to(device),
        places.to(device),
        ends.to(device),
        entries,
        None if numbers is None else _numbers(numbers, device),
    )


def _numbers(message: Any, device: torch.device) -> Numbers:
    def of(data: bytes) -> Tensor:
        return torch.frombuffer(bytearray(data), dtype=torch.float32).to(device)

    return Numbers(
        {name: of(data) for name, data in message.inputs.items()},
        of(message.weight),
        of(message.entropy_weight) if len(message.entropy_weight) > 0 else None,
    )


def _idle(device: torch.device) -> Batch:
    zero = torch.zeros((1, 1), dtype=torch.int64, device=device)
    none = torch.zeros(0, dtype=torch.int64, device=device)
    entries = HeadEntries(zero.view(1), none, none, 1.0, differentiates_entropy=True)
    return Batch(None, zero, zero, zero + 1, entries, None)


def _integers(data: bytes) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.int32).to(torch.int64)
