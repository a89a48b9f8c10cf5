"""Estimates of the KL divergence from the reference policy, as terms of the loss. Constant: coefficient."""

from collections.abc import Mapping

from torch import Tensor

from hone_fsdp.losses.ratio import log_ratio


def kl_k1(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    return -_distance(logprob, inputs) * constants["coefficient"]


def kl_k2(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    d = _distance(logprob, inputs)
    return d * d * 0.5 * constants["coefficient"]


def kl_k3(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    d = _distance(logprob, inputs)
    return (d.exp() - d - 1) * constants["coefficient"]


def _distance(logprob: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
    """Log-probability under the reference minus that under the policy."""
    return log_ratio(inputs["referenceLogprob"], logprob)
