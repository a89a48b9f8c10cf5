"""Both kinds of divergence PPO. Constants: thresholdLow, thresholdHigh and maxRatio."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from hone_fsdp.losses.ratio import ratio_of
from hone_fsdp.losses.token.policy_gradient import weighted_policy_gradient

# Keeps the logarithm finite where a probability is 1.
_KL_EPSILON = 1e-8

# From log-probabilities now and when the tokens were sampled.
Divergence = Callable[[Tensor, Tensor], Tensor]


def dppo_tv(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    return _dppo(_total_variation, logprob, inputs, constants)


def dppo_kl(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    return _dppo(_binary_kl, logprob, inputs, constants)


def _dppo(
    divergence: Divergence, logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]
) -> Tensor:
    behaviour = inputs["behaviourLogprob"]
    with torch.no_grad():
        distance = divergence(logprob, behaviour)
        now, then = logprob.exp(), behaviour.exp()
        is_too_likely = (now > then) & (distance > constants["thresholdHigh"])
        is_too_unlikely = (now < then) & (distance > constants["thresholdLow"])
        is_too_far = torch.where(inputs["advantage"] > 0, is_too_likely, is_too_unlikely)
        weight = ratio_of(logprob, inputs, {}).clamp(max=constants["maxRatio"]).masked_fill(is_too_far, 0)
    return weighted_policy_gradient(weight, logprob, inputs)


def _total_variation(logprob: Tensor, behaviour: Tensor) -> Tensor:
    return (logprob.exp() - behaviour.exp()).abs()


def _binary_kl(logprob: Tensor, behaviour: Tensor) -> Tensor:
    now, then = logprob.exp(), behaviour.exp()
    others = torch.log((1 - then + _KL_EPSILON) / (1 - now + _KL_EPSILON))
    return then * (behaviour - logprob) + (1 - then) * others
