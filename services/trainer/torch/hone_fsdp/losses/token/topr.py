"""Tapered off-policy REINFORCE. Constants: positiveWeight, negativeWeight and, optionally, bySegment."""

from collections.abc import Mapping

import torch
from torch import Tensor

from hone_fsdp.losses.ratio import ratio_of
from hone_fsdp.losses.token.policy_gradient import weighted_policy_gradient


def topr(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    tapered = ratio_of(logprob, inputs, constants).clamp(0, 1) * constants["negativeWeight"]
    weight = torch.where(inputs["reward"] > 0, constants["positiveWeight"], tapered)
    return weighted_policy_gradient(weight, logprob, inputs)
