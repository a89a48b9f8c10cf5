"""The squared distance of a critic's value from the return, clipped around the value before the step."""

from collections.abc import Mapping

import torch
from torch import Tensor


def value(found: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    target = inputs["return"]
    plain = (found - target).square()
    clip = constants.get("clip")
    if clip is None:
        return plain / 2
    old = inputs["oldValue"]
    near = torch.clamp(found, old - clip, old + clip)
    return torch.maximum(plain, (near - target).square()) / 2
