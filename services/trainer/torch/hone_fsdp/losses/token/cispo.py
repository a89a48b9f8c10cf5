"""Clipped importance-sampling weights. Constants: clipLow, clipHigh and, optionally, mask and bySegment."""

from collections.abc import Mapping

from torch import Tensor

from hone_fsdp.losses.ratio import ratio_of
from hone_fsdp.losses.token.policy_gradient import weighted_policy_gradient


def cispo(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    advantage = inputs["advantage"]
    low, high = 1 - constants["clipLow"], 1 + constants["clipHigh"]
    ratio = ratio_of(logprob, inputs, constants)
    weight = ratio.clamp(low, high)
    if "mask" in constants:
        is_clipped = ((advantage > 0) & (ratio > high)) | ((advantage < 0) & (ratio < low))
        weight = weight.masked_fill(is_clipped, 0)
    return weighted_policy_gradient(weight, logprob, inputs)
