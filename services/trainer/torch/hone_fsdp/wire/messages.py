"""
The messages of proto/hone/training/v1, created from their descriptors.

`npm run generate` writes training.binpb beside this file, so that no protobuf compiler for Python is needed.
"""

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "hone.training.v1"


def _load() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    files = descriptor_pb2.FileDescriptorSet.FromString(
        Path(__file__).with_name("training.binpb").read_bytes()
    )
    for file in files.file:
        pool.Add(file)
    return pool


_POOL = _load()


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


def _number(enum: str, value: str) -> int:
    return int(_POOL.FindEnumTypeByName(f"{_PACKAGE}.{enum}").values_by_name[value].number)


WorkerCall = _message("WorkerCall")
WorkerAnswer = _message("WorkerAnswer")
WorkerSpan = _message("WorkerSpan")
Hello = _message("Hello")
Done = _message("Done")
Failure = _message("Failure")
LossTerm = _message("LossTerm")
Scores = _message("Scores")
MicrobatchScores = _message("MicrobatchScores")
Saved = _message("Saved")
SavedFile = _message("SavedFile")
NodeReport = _message("NodeReport")
NodeOrder = _message("NodeOrder")
NodeHello = _message("NodeHello")
RanksEnded = _message("RanksEnded")
Beat = _message("Beat")

FLOAT32 = _number("ElementType", "ELEMENT_TYPE_FLOAT32")
FLOAT16 = _number("ElementType", "ELEMENT_TYPE_FLOAT16")
BFLOAT16 = _number("ElementType", "ELEMENT_TYPE_BFLOAT16")
POLICY = _number("WeightSet", "WEIGHT_SET_POLICY")
REFERENCE = _number("WeightSet", "WEIGHT_SET_REFERENCE")
