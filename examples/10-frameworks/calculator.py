"""The task of the three agents, and the tool that they share."""

import json
import os
import re

OPERATORS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}


def question() -> str:
    """The story of this rollout, from the task that the program is given."""
    return json.loads(os.environ["HONE_TASK"])["prompt"][0]["content"]


def calculate(expression: str) -> str:
    """The value of an expression of two whole numbers, or what is wrong with it."""
    found = re.fullmatch(r"\s*(\d+)\s*([-+*])\s*(\d+)\s*", expression)
    if found is None:
        return "error"
    a, operator, b = found.groups()
    return str(OPERATORS[operator](int(a), int(b)))
