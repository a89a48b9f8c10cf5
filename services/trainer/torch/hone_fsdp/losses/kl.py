"""
Estimates of the KL divergence from the reference policy, as terms of the loss. Constants: coefficient and, optionally,
straightThrough.
"""

from collections.abc import Callable, Mapping

from torch import Tensor

from hone_fsdp.losses.ratio import bounded

# Largest k3 of a token.
_MAX_K3 = 10.0


def kl_k1(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    return _term(lambda d: -d, logprob, inputs, constants)


def kl_abs(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    return _term(lambda d: d.abs(), logprob, inputs, constants)


def kl_k2(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    return _term(_half_square, logprob, inputs, constants)


def kl_k3(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    return _term(_k3, logprob, inputs, constants)


def _term(
    estimate: Callable[[Tensor], Tensor],
    logprob: Tensor,
    inputs: Mapping[str, Tensor],
    constants: Mapping[str, float],
) -> Tensor:
    """@param estimate computes the estimate from the log-probability under the reference minus that under the policy"""
    d = inputs["referenceLogprob"] - logprob
    value = estimate(d)
    if "straightThrough" in constants:
        guide = _half_square(d)
        value = (value - guide).detach() + guide
    return value * constants["coefficient"]


def _half_square(d: Tensor) -> Tensor:
    return d * d * 0.5


def _k3(d: Tensor) -> Tensor:
    within = bounded(d)
    return (within.exp() - within - 1).clamp(-_MAX_K3, _MAX_K3)
