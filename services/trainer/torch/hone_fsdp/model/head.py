"""
Computes log-probabilities of the trained tokens, and entropies of their distributions.

With a large vocabulary the logits [U, V] need more memory than all activations of the layers, so the head works in chunks of
positions and recomputes their logits in the backward pass.

Letters: U positions whose prediction is read, E entries (trained tokens; several may read one position), C hidden
size, V vocabulary.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

# Number of logits computed at a time: 96 MiB in float32 on CPUs. Each chunk is queued kernel by kernel and adds to the gradient
# of the whole head, so on a GPU larger ones are faster: 512 MiB, of which several copies exist at a time.
_CHUNK_VALUES = {"cpu": 24 * 2**20, "cuda": 128 * 2**20}


@dataclass(frozen=True)
class HeadEntries:
    # int64 [U] indices into B*T
    positions: Tensor
    # int64 [E] indices into positions, non-decreasing
    entry_position: Tensor
    # int64 [E]
    entry_target: Tensor
    # The logits are divided by this.
    temperature: float
    # Whether the loss depends on entropies, so that they need gradients.
    differentiates_entropy: bool
    # Whether the sums of squared probabilities are wanted; only without gradients.
    has_squares: bool = False


class HeadScores(NamedTuple):
    # float32 [E]: log-probabilities, or the values of a value head
    score: Tensor
    # float32 [U]; empty with a value head
    entropy: Tensor
    # float32 [U]: sum over the vocabulary of p^2; empty where it is not asked for
    squares: Tensor


def value_positions(values_U1: Tensor, entries: HeadEntries) -> HeadScores:
    """The value of each entry's position."""
    values_U = values_U1.float().squeeze(-1)
    none = values_U.new_zeros(0)
    return HeadScores(values_U[entries.entry_position], none, none)


def score_positions(read_UC: Tensor, weight_VC: Tensor, entries: HeadEntries) -> HeadScores:
    """Scores hidden states, chunk by chunk."""
    positions = read_UC.shape[0]
    step = max(1, _CHUNK_VALUES[read_UC.device.type] // weight_VC.shape[0])
    starts = range(0, positions, step)
    # Entries are in the order of their positions, so those of a chunk are contiguous.
    bounds = torch.tensor([*starts, positions], device=read_UC.device)
    ends = torch.searchsorted(entries.entry_position, bounds).tolist()
    found = [
        _score_chunk(read_UC[start : start + step], weight_VC, entries, start, (ends[i], ends[i + 1]))
        for i, start in enumerate(starts)
    ]
    score, entropy, squares = (torch.cat(parts) for parts in zip(*found, strict=True))
    return HeadScores(score, entropy, squares)


def _score_chunk(
    read_UC: Tensor, weight_VC: Tensor, entries: HeadEntries, start: int, bounds: tuple[int, int]
) -> HeadScores:
    row = entries.entry_position[bounds[0] : bounds[1]] - start
    target = entries.entry_target[bounds[0] : bounds[1]]

    def compute(read: Tensor, weight: Tensor) -> HeadScores:
        logits_UV = F.linear(read, weight).float() / entries.temperature
        logprobs_UV = torch.log_softmax(logits_UV, dim=-1)
        with torch.set_grad_enabled(torch.is_grad_enabled() and entries.differentiates_entropy):
            entropy_U = -(logprobs_UV.exp() * logprobs_UV).sum(dim=-1)
        squares_U = logprobs_UV.mul(2).exp().sum(dim=-1) if entries.has_squares else entropy_U.new_zeros(0)
        return HeadScores(logprobs_UV[row, target], entropy_U, squares_U)

    if torch.is_grad_enabled():
        return HeadScores(
            *checkpoint(compute, read_UC, weight_VC, use_reentrant=False, preserve_rng_state=False)
        )
    return compute(read_UC, weight_VC)
