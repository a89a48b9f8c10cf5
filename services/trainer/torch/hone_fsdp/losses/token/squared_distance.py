"""The policy gradient with the square of the log ratio: dro with the constant beta, kimi15 with tau."""

from collections.abc import Mapping

from torch import Tensor

from hone_fsdp.losses.token.policy_gradient import policy_gradient


def dro(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    return policy_gradient(logprob, inputs) + _square(logprob, inputs, constants["beta"])


def kimi15(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    return policy_gradient(logprob, inputs) + _square(logprob, inputs, constants["tau"])


def _square(logprob: Tensor, inputs: Mapping[str, Tensor], weight: float) -> Tensor:
    distance = logprob - inputs["behaviourLogprob"]
    return distance * distance * (weight / 2)
