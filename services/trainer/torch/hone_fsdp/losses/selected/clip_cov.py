"""PPO that leaves out chosen tokens. Constants: clipLow and clipHigh; those of the choice play no part here."""

from collections.abc import Mapping

from torch import Tensor

from hone_fsdp.losses.ratio import ratio_of
from hone_fsdp.losses.surrogate import clipped_surrogate


def clip_cov(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    surrogate = clipped_surrogate(ratio_of(logprob, inputs, {}), inputs["advantage"], constants)
    return -surrogate.masked_fill(inputs["selected"] > 0, 0)
