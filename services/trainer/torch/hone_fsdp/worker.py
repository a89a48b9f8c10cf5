"""
A rank: `torchrun ... -m hone_fsdp.worker`, started by services/trainer.

    HONE_FSDP_SOCKET              the trainer's socket; read by the first rank
    HONE_FSDP_DEVICE              cpu or cuda
    HONE_FSDP_COLLECTIVE_SECONDS  time after which a rank that does not take part in a collective ends the group
    HONE_FSDP_PARENT              torchrun's process id; this process ends with it

W1  Every rank runs every call; the first rank receives it from the trainer and answers.
W2  A refused call is refused by all ranks, and the group continues. Any other exception ends this process, and with it the
    group, because a part of the call may have been done.
"""

import os
import sys
import traceback
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
import torch.utils.deterministic

from hone_fsdp.errors import Refused, bad_input
from hone_fsdp.nodes.processes import PARENT_VARIABLE, die_with
from hone_fsdp.parallel.group import Group
from hone_fsdp.trainer import Trainer
from hone_fsdp.wire import messages
from hone_fsdp.wire.channel import Channel
from hone_fsdp.wire.spans import Spans


def main() -> None:
    die_with(int(os.environ[PARENT_VARIABLE]))
    _be_reproducible()
    seconds = int(os.environ["HONE_FSDP_COLLECTIVE_SECONDS"])
    group = Group.join(os.environ["HONE_FSDP_DEVICE"], timedelta(seconds=seconds))
    channel = Channel(os.environ["HONE_FSDP_SOCKET"]) if group.is_first else None
    if channel is not None:
        hello = messages.Hello(
            world_size=group.size, torch_version=str(torch.__version__), device=group.device.type
        )
        channel.send(messages.WorkerAnswer(hello=hello))
    worker = Worker(group)
    while True:
        call = messages.WorkerCall.FromString(
            group.share_call(None if channel is None else channel.receive())
        )
        answer = worker.answer(call)  # W1
        if channel is not None:
            channel.send(answer)


class Worker:
    def __init__(self, group: Group) -> None:
        self._group = group
        self._spans = Spans(group)
        self._trainer: Trainer | None = None

    def answer(self, call: Any) -> Any:
        """@param call the message WorkerCall; @returns the message WorkerAnswer"""
        kind = call.WhichOneof("kind")
        self._spans.begin(call)
        try:
            with self._spans.phase(str(kind)):
                result = self._run(kind, call)
        except Refused as refused:  # W2
            result = messages.Failure(code=refused.code, message=refused.message)
        answer = messages.WorkerAnswer(number=call.number, spans=self._spans.collect())
        field = type(result).DESCRIPTOR.name.lower()
        getattr(answer, field).CopyFrom(result)
        return answer

    def _run(self, kind: str, call: Any) -> Any:
        if kind == "setup":
            self._trainer = Trainer(call.setup, self._group, self._spans)
            return messages.Done()
        if self._trainer is None:
            raise bad_input(f"the call {kind} came before setup; the model must be set up first")
        calls = {
            "load": self._trainer.load,
            "train": self._trainer.train,
            "score": self._trainer.score,
            "save": self._trainer.save,
            "reset_optimizer": self._trainer.reset_optimizer,
        }
        if kind not in calls:
            raise bad_input(f"the call {kind} is unknown; it must be one of {', '.join(calls)}")
        return calls[kind](getattr(call, kind))


def _be_reproducible() -> None:
    """Makes calls reproducible bit for bit; operators that cannot be reproducible warn."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    # Filling new memory would only help to find reads of uninitialised values, and costs a pass over it.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # made at run time
    torch.backends.cuda.matmul.allow_tf32 = False


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        # Exits without destroying the process group, which could wait long for ranks that are gone.
        os._exit(1)
    dist.destroy_process_group()
