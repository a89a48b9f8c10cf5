"""Geometric-mean policy optimization. Constants: clipLow and clipHigh."""

from collections.abc import Mapping

import torch
from torch import Tensor

from hone_fsdp.losses.ratio import bounded, group_mean


def gmpo(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    advantage, sequence = inputs["advantage"], inputs["sequence"]
    distance = logprob - inputs["behaviourLogprob"]
    where_negative = torch.where(advantage < 0, distance.clamp(min=-constants["clipLow"]), 0.0)
    clipped = torch.where(advantage > 0, distance.clamp(max=constants["clipHigh"]), where_negative)
    ratio = bounded(group_mean(clipped, sequence)).exp()
    return -ratio * group_mean(advantage, sequence)
