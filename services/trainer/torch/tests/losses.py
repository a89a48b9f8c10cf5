"""
Answers the golden cases of losses for src/fsdp/fsdp-losses.test.ts: `python -m tests.losses` reads tasks and writes loss and
gradient of each, as JSON. In float64, so that rounding hides no difference; on a GPU where HONE_TEST_TORCH_DEVICE is cuda.
"""

import json
import os
import sys
from types import SimpleNamespace
from typing import Any

import torch

from hone_fsdp.update.objective import loss_of

_DEVICE = "cuda" if os.environ.get("HONE_TEST_TORCH_DEVICE") == "cuda" else "cpu"


def answer(task: Any) -> dict[str, Any]:
    def numbers(values: list[float]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float64, device=_DEVICE)

    score = numbers(task["scores"]).requires_grad_()
    inputs = {name: numbers(values) for name, values in task["inputs"].items()}
    per_entry = sum(loss_of(_term(each), score, inputs) for each in task["terms"])
    loss = (per_entry * numbers(task["weights"])).sum()
    (gradient,) = torch.autograd.grad(loss, score)
    return {"loss": float(loss.detach()), "gradient": gradient.tolist()}


def _term(task: Any) -> SimpleNamespace:
    """A term as the message LossTerm has it."""
    expression = json.dumps(task["expression"]) if "expression" in task else ""
    return SimpleNamespace(name=task["name"], constants=task["constants"], expression=expression)


if __name__ == "__main__":
    json.dump([answer(task) for task in json.load(sys.stdin)], sys.stdout)
