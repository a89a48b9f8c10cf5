"""Soft adaptive policy optimization. Constants: tauPositive and tauNegative."""

from collections.abc import Mapping

import torch
from torch import Tensor

from hone_fsdp.losses.ratio import ratio_of


def sapo(logprob: Tensor, inputs: Mapping[str, Tensor], constants: Mapping[str, float]) -> Tensor:
    advantage = inputs["advantage"]
    distance = ratio_of(logprob, inputs, {}) - 1

    def gate(tau: float) -> Tensor:
        return torch.sigmoid(distance * tau) * (4 / tau)

    gates = torch.where(advantage > 0, gate(constants["tauPositive"]), gate(constants["tauNegative"]))
    return -gates * advantage
