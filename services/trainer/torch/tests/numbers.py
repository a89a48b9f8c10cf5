"""
Numbers for src/fsdp/fsdp-parity.test.ts: `python -m tests.numbers`, JSON in, JSON out.

    parameters  after AdamW made one update for each of the gradients that are given
    attention   largest difference between attention with a mask and in blocks, on packed rows; PyTorch has no gradient of the
                latter on CPUs
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
    q, k, v = (torch.randn(shape) for shape in shapes)
    masked = attend_masked(visible_end)(q, k, v)
    in_blocks = attend_in_blocks(visible_end, flex_attention)(q, k, v)
    return float((masked - in_blocks).abs().max())


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    json.dump({"parameters": after_updates(asked), "attention": attention_difference()}, sys.stdout)
