"""
The calls of the trainer. Every rank runs the same calls in the same order, and takes part in every exchange between ranks.

T1  A refused call changes neither weights nor optimizer, except that after a refused load there are none.
T2  The same calls on the same state and the same number of ranks give the same bits.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from hone_fsdp.errors import Refused, bad_input
from hone_fsdp.model.head import HeadScores
from hone_fsdp.parallel.batches import Batch, share_out
from hone_fsdp.parallel.group import Group
from hone_fsdp.parallel.sharding import ShardedModel
from hone_fsdp.state.moments import load_moments, save_moments
from hone_fsdp.state.weights import local_of, read_shards, write_files
from hone_fsdp.update.objective import check_terms, total_loss
from hone_fsdp.update.optimizer import AdamW
from hone_fsdp.wire import messages
from hone_fsdp.wire.spans import Spans

# Added to the norm before dividing, as clip_grad_norm_ does.
_NORM_EPSILON = 1e-6
# The terms of the supervised part of an update.
_IMITATION = (messages.LossTerm(name="cross_entropy"),)


@dataclass(frozen=True)
class _Passed:
    """
    A microbatch's results where they were computed. They are fetched after the last microbatch, because a GPU would idle
    while the host waits for numbers and does not queue the next pass.
    """

    index: int
    # None where samples are only scored.
    loss: Tensor | None
    found: HeadScores

    def fetch(self) -> "_Scored":
        score, entropy, squares = (each.detach().float().cpu().numpy().tobytes() for each in self.found)
        loss = 0.0 if self.loss is None else float(self.loss)
        return _Scored(self.index, loss, score, entropy, squares)


@dataclass(frozen=True)
class _Scored:
    """A microbatch's results in host memory, to be gathered."""

    index: int
    loss: float
    score: bytes
    entropy: bytes
    squares: bytes


class Trainer:
    def __init__(self, setup: Any, group: Group, spans: Spans) -> None:
        """@param setup the message Setup"""
        self._group = group
        self._spans = spans
        self._model = ShardedModel(setup, group)
        decayed = frozenset(each.name for each in setup.trained if each.is_decayed)
        self._optimizer = AdamW(self._model.trained, decayed)
        # Names of the parameters that have values. Those of the base model keep theirs when adapters are loaded.
        self._filled: set[str] = set()
        self._is_loaded = False
        self._reference: dict[str, Tensor] | None = None

    def load(self, call: Any) -> Any:
        is_policy = call.target == messages.POLICY
        wanted = self._model.parameters if is_policy else self._model.trained
        needed = set(self._model.trained)
        if is_policy:
            needed |= set(self._model.parameters) - self._filled
        missing = sorted(needed - {each.name for each in call.tensors})
        if missing:
            raise bad_input(f"the weights to load lack {missing[0]}")
        if is_policy:
            self._is_loaded = False
            with self._group.agreeing("load weights"), torch.no_grad():
                for name, rows in read_shards(call.tensors, wanted):
                    local_of(self._model.parameters[name]).copy_(rows)
            self._filled |= {each.name for each in call.tensors}
            self._optimizer.forget()
            if call.optimizer_folder:
                load_moments(call.optimizer_folder, self._optimizer, self._group)
            self._is_loaded = True
            return messages.Done()
        reference: dict[str, Tensor] = {}
        with self._group.agreeing("load the reference"):
            for name, rows in read_shards(call.tensors, wanted):
                reference[name] = rows.to(local_of(self._model.trained[name]).device, copy=True)
        self._reference = reference
        return messages.Done()

    def train(self, call: Any) -> Any:
        self._require_weights("train")
        check_terms(call.terms)
        passed: list[_Passed] = []
        try:
            for batch, terms in self._batches_of(call):
                with self._spans.phase("forward"):
                    found = self._forward(batch)
                    if batch.index is None or batch.numbers is None:
                        # No effect, but every parameter of either head takes part in the exchange of gradients.
                        loss = found.score.sum() * 0.0 + found.entropy.sum() * 0.0
                    else:
                        loss = total_loss(terms, found.score, found.entropy, batch.numbers)
                        detached = HeadScores(*(each.detach() for each in found))
                        passed.append(_Passed(batch.index, loss.detach(), detached))
                with self._spans.phase("backward"):
                    loss.backward()
            with self._spans.phase("norm"):
                scored = [each.fetch() for each in passed]
                grad_norm, loss_sum = self._norm_and(sum(each.loss for each in scored))
            _require_finite("loss", loss_sum)
            _require_finite("gradient norm", grad_norm)
            factor = call.max_grad_norm / (grad_norm + _NORM_EPSILON)
            if factor < 1:
                for gradient in self._gradients():
                    gradient.mul_(factor)
            with self._spans.phase("update"):
                self._optimizer.update(call.optimizer)
        finally:
            self._model.module.zero_grad(set_to_none=True)
        return self._collect(scored, len(call.microbatches) + len(call.supervised), grad_norm)

    def _batches_of(self, call: Any) -> Iterator[tuple[Batch, Any]]:
        """This rank's batches of an update with the terms of their loss, those of its supervised part last."""
        for batch in share_out(call.microbatches, call.temperature, self._group):
            yield batch, call.terms
        first = len(call.microbatches)
        for batch in share_out(call.supervised, 1.0, self._group):
            index = None if batch.index is None else first + batch.index
            yield replace(batch, index=index), _IMITATION

    def score(self, call: Any) -> Any:
        self._require_weights("score samples")
        exchanged = self._exchanged() if call.target == messages.REFERENCE else nullcontext()
        passed: list[_Passed] = []
        with exchanged, torch.no_grad():
            shared = share_out(call.microbatches, call.temperature, self._group, has_squares=call.has_squares)
            for batch in shared:
                with self._spans.phase("forward"):
                    found = self._forward(batch)
                    if batch.index is not None:
                        passed.append(_Passed(batch.index, None, found))
            self._model.release()
        return self._collect([each.fetch() for each in passed], len(call.microbatches), 0.0)

    def save(self, call: Any) -> Any:
        self._require_weights("save")
        files = write_files(call.files, self._model.parameters, self._group)
        optimizer_bytes = 0
        if call.optimizer_folder:
            optimizer_bytes = save_moments(call.optimizer_folder, self._optimizer, self._group)
        return messages.Saved(
            files=[messages.SavedFile(digest=digest, bytes=size) for digest, size in files],
            optimizer_bytes=optimizer_bytes,
        )

    def reset_optimizer(self, _call: Any) -> Any:
        self._require_weights("reset the optimizer")
        self._optimizer.forget()
        return messages.Done()

    def _forward(self, batch: Batch) -> HeadScores:
        return self._model.module(batch.token_ids, batch.position_ids, batch.visible_end, batch.entries)

    def _gradients(self) -> Iterator[Tensor]:
        for parameter in self._model.trained.values():
            if parameter.grad is not None:
                yield local_of(parameter.grad)

    def _norm_and(self, loss: float) -> tuple[float, float]:
        """Global norm of the gradients, and the sum of the losses; in float64, the same on every rank."""
        norms = [torch.linalg.vector_norm(each, dtype=torch.float64) for each in self._gradients()]
        # Fetched together, because the host waits for a GPU at each fetch.
        fetched = torch.stack(norms).tolist() if norms else []
        squares, loss = self._group.sum([sum(norm**2 for norm in fetched), loss])
        return math.sqrt(squares) if squares >= 0 else math.nan, loss

    @contextmanager
    def _exchanged(self) -> Iterator[None]:
        """Swaps the reference's values with the policy's, without a third copy of either."""
        if self._reference is None:
            raise bad_input("no reference was loaded to score samples with")
        self._swap(self._reference)
        try:
            yield
        finally:
            self._swap(self._reference)

    def _swap(self, others: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self._model.trained.items():
                local = local_of(parameter)
                kept = local.clone()
                local.copy_(others[name])
                others[name].copy_(kept)

    def _collect(self, scored: list[_Scored], count: int, grad_norm: float) -> Any:
        """The results of all ranks in the order of the microbatches, on the first rank."""
        with self._spans.phase("gather"):
            gathered = self._group.gather(scored)
        if gathered is None:
            return messages.Done()
        by_index = {each.index: each for part in gathered for each in part}
        ordered = [by_index[i] for i in range(count)]
        return messages.Scores(
            microbatches=[
                messages.MicrobatchScores(score=each.score, entropy=each.entropy, squares=each.squares)
                for each in ordered
            ],
            loss=sum(each.loss for each in ordered),  # T2: in their order
            grad_norm=grad_norm,
        )

    def _require_weights(self, action: str) -> None:
        if not self._is_loaded:
            raise bad_input(f"the engine has no weights, so it cannot {action}; load some first")


def _require_finite(quantity: str, value: float) -> None:
    if not math.isfinite(value):
        raise Refused("NON_FINITE", f"the {quantity} is {value}, so the weights were not updated")
