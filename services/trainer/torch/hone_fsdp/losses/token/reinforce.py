"""REINFORCE, whose formula is also that of gpg."""

from collections.abc import Mapping

from torch import Tensor

from hone_fsdp.losses.token.policy_gradient import policy_gradient


def reinforce(logprob: Tensor, inputs: Mapping[str, Tensor], _constants: Mapping[str, float]) -> Tensor:
    return policy_gradient(logprob, inputs)
