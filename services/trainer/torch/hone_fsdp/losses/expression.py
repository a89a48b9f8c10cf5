"""
A loss that is given as an expression: a number, the name of an input, or a list of an operation and its operands
(libs/rl/src/algorithm/loss/expression.ts).
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from hone_fsdp.errors import bad_input

_OPERATIONS: Mapping[str, Callable[..., Tensor]] = {
    "add": torch.add,
    "subtract": torch.sub,
    "multiply": torch.mul,
    "divide": torch.div,
    "min": torch.minimum,
    "max": torch.maximum,
    "greater": lambda a, b: (a > b).to(a.dtype),
    "negate": torch.neg,
    "exp": torch.exp,
    "log": torch.log,
    "abs": torch.abs,
    "sigmoid": torch.sigmoid,
    "detach": Tensor.detach,
}


def evaluate(expression: str, logprob: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
    """
    Raises Refused if an operation or a name is unknown.
    @param expression as JSON
    """
    numbers = {**inputs, "logprob": logprob}

    def value(part: Any) -> Tensor:
        if isinstance(part, int | float):
            return logprob.new_tensor(part)
        if isinstance(part, str):
            if part not in numbers:
                raise bad_input(f"the loss reads {part}, which no input is")
            return numbers[part]
        operation, *operands = part
        if operation not in _OPERATIONS:
            raise bad_input(
                f"the operation {operation} is unknown; it must be one of {', '.join(_OPERATIONS)}"
            )
        return _OPERATIONS[operation](*map(value, operands))

    return value(json.loads(expression))
