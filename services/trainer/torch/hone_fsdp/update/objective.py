"""
The objective of the call Train: the terms of its loss, added up for each trained token (an entry), and the entropy bonus.

Letters: E entries, U positions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from hone_fsdp.errors import bad_input
from hone_fsdp.losses import LOSSES
from hone_fsdp.losses.expression import evaluate


@dataclass(frozen=True)
class Numbers:
    """The numbers of a microbatch that the loss reads."""

    # float32 [E] by name
    inputs: Mapping[str, Tensor]
    # float32 [E]
    weight: Tensor
    # float32 [U]; None = no entropy bonus.
    entropy_weight: Tensor | None


def total_loss(terms: Any, score_E: Tensor, entropy_U: Tensor, numbers: Numbers) -> Tensor:
    """
    sum over entries of weight * (sum of the terms of the entry) - sum over positions of entropy_weight * entropy

    @param terms messages LossTerm, at least one
    """
    first, *rest = (loss_of(term, score_E, numbers.inputs) for term in terms)
    per_entry = sum(rest, start=first)
    total = (per_entry * numbers.weight).sum()
    if numbers.entropy_weight is not None:
        total = total - (entropy_U * numbers.entropy_weight).sum()
    return total


def loss_of(term: Any, score_E: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
    """The loss of every entry, [E]. @param term message LossTerm"""
    if term.expression:
        return evaluate(term.expression, score_E, inputs)
    return LOSSES[term.name](score_E, inputs, dict(term.constants))


def check_terms(terms: Any) -> None:
    """
    Raises Refused if a term is unknown. Called on every rank before any pass, because a rank without work would not notice.
    @param terms messages LossTerm
    """
    if len(terms) == 0:
        raise bad_input("the loss has no terms; it needs at least one")
    for term in terms:
        if not term.expression and term.name not in LOSSES:
            raise bad_input(f"the loss {term.name} is unknown; it must be one of {', '.join(LOSSES)}")
