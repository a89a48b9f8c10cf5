"""The policy gradient with a weight, which several losses share."""

from collections.abc import Mapping

from torch import Tensor


def policy_gradient(logprob: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
    """-A log pi for every entry."""
    return -logprob * inputs["advantage"]


def weighted_policy_gradient(weight: Tensor, logprob: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
    """The same times a weight without a gradient."""
    return weight.detach() * policy_gradient(logprob, inputs)
