"""Truncated importance sampling. Constants: lower, upper and, optionally, bySegment."""

from collections.abc import Mapping

from torch import Tensor

from hone_fsdp.losses.ratio import ratio_of
from hone_fsdp.losses.token.policy_gradient import weighted_policy_gradient


def tis(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    weight = ratio_of(logprob, inputs, constants).clamp(constants["lower"], constants["upper"])
    return weighted_policy_gradient(weight, logprob, inputs)
