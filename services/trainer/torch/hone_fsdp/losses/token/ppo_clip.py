"""The clipped surrogate of PPO. Constants: clipLow, clipHigh and, optionally, dualClip and bySegment."""

from collections.abc import Mapping

import torch
from torch import Tensor

from hone_fsdp.losses.ratio import ratio_of
from hone_fsdp.losses.surrogate import clipped_surrogate


def ppo_clip(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    advantage = inputs["advantage"]
    surrogate = clipped_surrogate(ratio_of(logprob, inputs, constants), advantage, constants)
    if "dualClip" in constants:
        bounded = torch.maximum(surrogate, advantage * constants["dualClip"])
        surrogate = torch.where(advantage <= 0, bounded, surrogate)
    return -surrogate
