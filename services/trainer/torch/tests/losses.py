"""
Answers the golden cases of losses for src/fsdp/fsdp-losses.test.ts: `python -m tests.losses` reads tasks and writes loss and
gradient of each, as JSON. In float64, so that rounding hides no difference.
"""

import json
import sys
from typing import Any

import torch

from hone_fsdp.losses import LOSSES
from hone_fsdp.losses.expression import evaluate


def answer(task: Any) -> dict[str, Any]:
    def numbers(values: list[float]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float64)

    score = numbers(task["scores"]).requires_grad_()
    inputs = {name: numbers(values) for name, values in task["inputs"].items()}
    per_entry = sum(_loss_of(term, score, inputs) for term in task["terms"])
    loss = (per_entry * numbers(task["weights"])).sum()
    (gradient,) = torch.autograd.grad(loss, score)
    return {"loss": float(loss.detach()), "gradient": gradient.tolist()}


def _loss_of(term: Any, score: torch.Tensor, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    if "expression" in term:
        return evaluate(json.dumps(term["expression"]), score, inputs)
    return LOSSES[term["name"]](score, inputs, term["constants"])


if __name__ == "__main__":
    json.dump([answer(task) for task in json.load(sys.stdin)], sys.stdout)
