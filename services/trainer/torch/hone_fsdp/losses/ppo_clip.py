"""The clipped surrogate of PPO. Constants: clipLow, clipHigh and, optionally, dualClip."""

from collections.abc import Mapping

import torch
from torch import Tensor

from hone_fsdp.losses.ratio import log_ratio


def ppo_clip(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    advantage = inputs["advantage"]
    ratio = log_ratio(logprob, inputs["behaviourLogprob"]).exp()
    clipped = ratio.clamp(1 - constants["clipLow"], 1 + constants["clipHigh"])
    surrogate = torch.minimum(ratio * advantage, clipped * advantage)
    if "dualClip" in constants:
        bounded = torch.maximum(surrogate, advantage * constants["dualClip"])
        surrogate = torch.where(advantage <= 0, bounded, surrogate)
    return -surrogate
