"""Group sequence policy optimization. Constants: clipLow and clipHigh."""

from collections.abc import Mapping

from torch import Tensor

from hone_fsdp.losses.ratio import group_mean
from hone_fsdp.losses.surrogate import clipped_surrogate

# Largest log ratio of a sample.
_MAX_LOG_RATIO = 10.0


def gspo(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    fixed = logprob.detach()
    mean = group_mean(fixed - inputs["behaviourLogprob"], inputs["sequence"])
    ratio = (mean + (logprob - fixed)).clamp(max=_MAX_LOG_RATIO).exp()
    return -clipped_surrogate(ratio, inputs["advantage"], constants)
