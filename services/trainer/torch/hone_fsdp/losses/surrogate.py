"""The clipped surrogate that several losses share."""

from collections.abc import Mapping

import torch
from torch import Tensor


def clipped_surrogate(ratio: Tensor, advantage: Tensor, constants: Mapping[str, float]) -> Tensor:
    """min(r A, clip(r, 1 - clipLow, 1 + clipHigh) A) for every entry."""
    clipped = ratio.clamp(1 - constants["clipLow"], 1 + constants["clipHigh"])
    return torch.minimum(ratio * advantage, clipped * advantage)
