"""Group sequence policy optimization. Constants: clipLow and clipHigh."""

from collections.abc import Mapping

from torch import Tensor

from hone_fsdp.losses.ratio import bounded, group_mean
from hone_fsdp.losses.surrogate import clipped_surrogate


def gspo(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    fixed = logprob.detach()
    mean = group_mean(fixed - inputs["behaviourLogprob"], inputs["sequence"])
    ratio = bounded(mean + (logprob - fixed)).exp()
    return -clipped_surrogate(ratio, inputs["advantage"], constants)
