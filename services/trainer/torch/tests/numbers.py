"""
Numbers for src/fsdp/fsdp-parity.test.ts: `python -m tests.numbers`, JSON in, JSON out.

    parameters  after AdamW made one update for each of the gradients that are given
    attention   largest difference between attention with a mask and in blocks, on packed rows. On a GPU with gradients and compiled,
                as workers have it; PyTorch has no gradient of it on CPUs
"""

import json
import sys
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention

from hone_fsdp.attention import attend_in_blocks, attend_masked, attend_packed
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
    shapes = [(2, 4, 9, 16), (2, 2, 9, 16), (2, 2, 9, 16)]
    has_gpu = torch.cuda.is_available()
    device = "cuda" if has_gpu else "cpu"
    visible_end = visible_end.to(device)
    in_blocks = attend_packed(visible_end) if has_gpu else attend_in_blocks(visible_end, flex_attention)
    values = [torch.randn(shape).to(device) for shape in shapes]
    results: list[list[torch.Tensor]] = []
    for attend in (attend_masked(visible_end), in_blocks):
        q, k, v = (value.clone().requires_grad_(has_gpu) for value in values)
        mixed = attend(q, k, v)
        gradients = torch.autograd.grad((mixed * mixed).sum(), (q, k, v)) if has_gpu else ()
        results.append([mixed.detach(), *gradients])
    return max(float((a - b).abs().max()) for a, b in zip(*results, strict=True))


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    json.dump({"parameters": after_updates(asked), "attention": attention_difference()}, sys.stdout)
