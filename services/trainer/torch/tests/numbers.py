"""
Computes numbers for src/fsdp/fsdp-parity.test.ts: `python -m tests.numbers` reads and writes JSON.

    parameters  after one update of AdamW for each of the given gradients
    attention   largest difference between attention with a mask and in blocks, on packed rows. On a GPU with gradients and compiled,
                as workers have it; PyTorch has no gradient of it on CPUs
    blocks      how many of 100 random packed rows have other blocks than PyTorch's own mask of every pair
    maskMiB     what the blocks of a row of 65,536 tokens add to the process's largest size
"""

import json
import random
import resource
import sys
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from hone_fsdp.model.attention import attend_in_blocks, attend_masked, attend_packed, visible_blocks
from hone_fsdp.update.optimizer import AdamW


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


def attention_difference(head_size: int) -> float:
    """Two rows: a shared prompt with two branches and another sample; one sample and padding."""
    visible_end = torch.tensor([[7, 7, 5, 5, 5, 7, 7, 9, 9], [4, 4, 4, 4, 5, 6, 7, 8, 9]])
    torch.manual_seed(1)
    shapes = [(2, heads, 9, head_size) for heads in (4, 2, 2)]
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


def random_row(tokens: int, draw: random.Random) -> list[int]:
    """Samples and nested branches of random lengths, and padding at the end that no token attends to."""
    ends = [0] * tokens
    used = draw.randint(1, tokens)

    def fill(begin: int, end: int) -> None:
        while begin < end:
            branch_end = draw.randint(begin + 1, end)
            stem_end = draw.randint(begin + 1, branch_end)
            ends[begin:stem_end] = [branch_end] * (stem_end - begin)
            fill(stem_end, branch_end)
            begin = branch_end

    fill(0, used)
    return ends


def differing_blocks() -> int:
    draw = random.Random(3)
    differing = 0
    for tokens in [draw.choice([1, 9, 128, 129, 300, 640]) for _ in range(100)]:
        ends = torch.tensor([random_row(tokens, draw) for _ in range(2)])

        def is_seen(b: Any, _h: Any, i: Any, j: Any, ends: torch.Tensor = ends) -> torch.Tensor:
            return (j <= i) & (i < ends[b, j])

        theirs = create_block_mask(is_seen, 2, None, tokens, tokens, device="cpu")
        ours = visible_blocks(ends)
        parts = ("kv_num_blocks", "full_kv_num_blocks", "q_num_blocks", "full_q_num_blocks")
        counts = all(torch.equal(getattr(ours, part), getattr(theirs, part)) for part in parts)
        differing += not (counts and torch.equal(ours.to_dense(), theirs.to_dense()))
    return differing


def mask_mebibytes(tokens: int) -> float:
    ends = torch.tensor([random_row(tokens, random.Random(4))])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    visible_blocks(ends)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    answer = {
        # Measured first, because a process's peak memory never decreases.
        "maskMiB": mask_mebibytes(65_536),
        "parameters": after_updates(asked),
        # Flex attention needs smaller heads to be padded, and others not.
        "attention": max(attention_difference(size) for size in (4, 16)),
        "blocks": differing_blocks(),
    }
    json.dump(answer, sys.stdout)
