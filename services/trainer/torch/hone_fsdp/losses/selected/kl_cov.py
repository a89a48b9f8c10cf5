"""The policy gradient with chosen tokens held near the policy that sampled them. Constant: coefficient."""

from collections.abc import Mapping

from torch import Tensor

from hone_fsdp.losses.ratio import log_ratio


def kl_cov(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    distance = log_ratio(logprob, inputs["behaviourLogprob"])
    held = distance.abs() * inputs["selected"] * constants["coefficient"]
    return held - distance.exp() * inputs["advantage"]
