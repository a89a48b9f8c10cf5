"""
Losses as data: a name with its constants, given for each trained token (an entry). The same as libs/train/src/losses.ts
and kl.ts, where the papers are named.

Letters: E entries, U positions.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hone_fsdp import messages
from hone_fsdp.errors import bad_input

# Largest |log ratio| that enters the exponential: its products stay finite, and no clip range reaches it.
MAX_LOG_RATIO = 20.0


@dataclass(frozen=True)
class Numbers:
    """What the loss reads of a microbatch; None where the objective has no such term."""

    # float32 [E]
    behaviour_logprob: Tensor
    advantage: Tensor
    weight: Tensor
    reference_logprob: Tensor | None
    # float32 [U]
    entropy_weight: Tensor | None


def total_loss(objective: Any, logprob_E: Tensor, entropy_U: Tensor, numbers: Numbers) -> Tensor:
    """
    sum over entries of weight * (l(entry) + coefficient * kl(entry)) - sum over positions of entropy_weight * entropy

    @param objective the message Train, or any that has its `loss` and `kl`
    """
    per_entry = entry_loss(objective.loss, logprob_E, numbers)
    if objective.HasField("kl"):
        assert numbers.reference_logprob is not None
        kl = estimate_kl(objective.kl.kind, logprob_E, numbers.reference_logprob)
        per_entry = per_entry + kl * objective.kl.coefficient
    total = (per_entry * numbers.weight).sum()
    if numbers.entropy_weight is not None:
        total = total - (entropy_U * numbers.entropy_weight).sum()
    return total


def check_objective(objective: Any) -> None:
    """
    Raises Refused where the loss or its KL term is unknown: on every rank and before any pass, as a rank without work
    would not meet it. @param objective the message Train
    """
    kind = objective.loss.WhichOneof("kind")
    if kind not in ("cross_entropy", "ppo_clip"):
        raise bad_input("train", "its loss is ppo_clip or cross_entropy", str(kind))
    if objective.HasField("kl") and objective.kl.kind not in (messages.KL_K1, messages.KL_K2, messages.KL_K3):
        raise bad_input("train", "its KL term is k1, k2 or k3", str(objective.kl.kind))


def entry_loss(loss: Any, logprob: Tensor, numbers: Numbers) -> Tensor:
    """The named loss of every entry, [E]."""
    if loss.WhichOneof("kind") == "cross_entropy":
        return -logprob
    clip = loss.ppo_clip
    advantage = numbers.advantage
    log_ratio = (logprob - numbers.behaviour_logprob).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip.clip_low, 1 + clip.clip_high)
    surrogate = torch.minimum(ratio * advantage, clipped * advantage)
    if clip.HasField("dual_clip"):
        bounded = torch.maximum(surrogate, advantage * clip.dual_clip)
        surrogate = torch.where(advantage <= 0, bounded, surrogate)
    return -surrogate


def estimate_kl(kind: int, logprob: Tensor, reference_logprob: Tensor) -> Tensor:
    """The estimate of KL(policy || reference) of every entry, [E]."""
    d = (reference_logprob - logprob).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    if kind == messages.KL_K1:
        return -d
    if kind == messages.KL_K2:
        return d * d * 0.5
    return d.exp() - d - 1
