"""
Numbers for src/fsdp/fsdp-parity.test.ts: `python -m tests.numbers`, JSON in, JSON out.

    parameters  after AdamW made one update for each of the gradients that are given
    attention   largest difference, values and gradients, between attention with a mask and in blocks, on packed rows
"""

import json
import sys
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention

from hone_fsdp.attention import attend_in_blocks, attend_masked
from hone_fsdp.optimizer import AdamW


def after_updates(asked: Any) -> list[list[float]]:
    parameters = {str(i): nn.Parameter(torch.tensor(values)) for i, values in enumerate(asked["start"])}
    decayed = frozenset(name for name in parameters if asked["isDecayed"][int(name)])
    optimizer = AdamW(parameters, decayed)
    names = {
        "learning_rate": "learningRate",
        "beta1": "beta1",
        "beta2": "beta2",
        "epsilon": "epsilon",
        "weight_decay": "weightDecay",
    }
    options = SimpleNamespace(**{name: asked["options"][key] for name, key in names.items()})
    for gradients in asked["gradients"]:
        for name, parameter in parameters.items():
            parameter.grad = torch.tensor(gradients[int(name)])
        optimizer.update(options)
    return [each.tolist() for each in parameters.values()]


def attention_difference() -> float:
    """Two rows: a shared prompt with two branches and another sample; one sample and padding."""
    visible_end = torch.tensor([[7, 7, 5, 5, 5, 7, 7, 9, 9], [4, 4, 4, 4, 5, 6, 7, 8, 9]])
    torch.manual_seed(1)
    shapes = [(2, 4, 9, 8), (2, 2, 9, 8), (2, 2, 9, 8)]
    results: list[list[torch.Tensor]] = []
    values = [torch.randn(shape) for shape in shapes]
    for attend in (attend_masked(visible_end), attend_in_blocks(visible_end, flex_attention)):
        q, k, v = (value.clone().requires_grad_(True) for value in values)
        mixed = attend(q, k, v)
        gradients = torch.autograd.grad((mixed * mixed).sum(), (q, k, v))
        results.append([mixed.detach(), *gradients])
    return max(float((a - b).abs().max()) for a, b in zip(*results, strict=True))


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    json.dump({"parameters": after_updates(asked), "attention": attention_difference()}, sys.stdout)
