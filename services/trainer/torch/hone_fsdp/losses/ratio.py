"""Ratios of probabilities, of entries and of groups of entries. Letters: E entries."""

from collections.abc import Mapping

import torch
from torch import Tensor

# Largest |log ratio| before the exponential, so that products stay finite; it is beyond every clip range.
MAX_LOG_RATIO = 20.0


def bounded(log_ratio: Tensor) -> Tensor:
    return log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)


def log_ratio(logprob: Tensor, other: Tensor) -> Tensor:
    """log(probability / other probability), bounded."""
    return bounded(logprob - other)


def ratio_of(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    """[E] the ratio of each entry, or that of its segment where the constant bySegment asks for it."""
    distance = logprob - inputs["behaviourLogprob"]
    if "bySegment" in constants:
        distance = group_mean(distance, inputs["segment"])
    return bounded(distance).exp()


def group_mean(x: Tensor, group: Tensor) -> Tensor:
    """
    [E] the mean of each entry's group.

    @param x [E]
    @param group [E] number of each entry's group, from 0 and below E
    """
    index = group.long()
    zeros = torch.zeros_like(x)
    sums = zeros.index_add(0, index, x)
    counts = zeros.index_add(0, index, torch.ones_like(x))
    # There are fewer groups than entries: the other places hold no entry.
    return (sums / counts.clamp(min=1))[index]
