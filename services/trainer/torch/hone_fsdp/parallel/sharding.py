"""
The model over the ranks: fully_shard on every layer, then on the whole.

S1  Weights, sums of gradients and the optimizer are float32 shards; layers may compute in bfloat16.
S2  Gradients are summed over the ranks, never averaged: the weights of the loss carry the means.
S3  A pass without gradients leaves the outermost weights gathered, and they would be outdated after an update: call
    `release` after such a pass.
"""

from typing import Any

import torch
from torch import nn
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
)

from hone_fsdp.errors import bad_input
from hone_fsdp.model.decoder import CausalModel
from hone_fsdp.parallel.group import Group
from hone_fsdp.wire import messages

_ADAPTER_PREFIX = "base_model.model."
_COMPUTE_TYPES = {messages.FLOAT32: torch.float32, messages.BFLOAT16: torch.bfloat16}


class ShardedModel:
    """A model whose parameters are shards; `trained` maps the names in states to the trained parameters."""

    def __init__(self, setup: Any, group: Group) -> None:
        """@param setup the message Setup; the parameters have no values before the first load."""
        if setup.offloads_to_host and group.device.type == "cpu":
            raise bad_input(
                "weights can be offloaded to the host only from GPUs, and this group runs on CPUs"
            )
        dtype = _COMPUTE_TYPES.get(setup.compute_type)
        if dtype is None:
            raise bad_input(
                f"the compute type {setup.compute_type} is not supported; it must be float32 or bfloat16"
            )
        adapters = setup.adapters if setup.HasField("adapters") else None
        with torch.device("meta"):
            self.module = CausalModel(setup.model, adapters, bool(setup.recomputes_layers))
        self.trained = self._select(setup, adapters is not None)
        policy: dict[str, Any] = {
            "mesh": group.mesh,
            # Positions and angles keep their precision.
            "mp_policy": MixedPrecisionPolicy(
                param_dtype=None if dtype is torch.float32 else dtype,
                reduce_dtype=torch.float32,
                cast_forward_inputs=False,
            ),
            "offload_policy": CPUOffloadPolicy() if setup.offloads_to_host else OffloadPolicy(),
        }
        for layer in self.module.model.layers:
            fully_shard(layer, **policy)
        fully_shard(self.module, **policy)
        for part in self._sharded_parts():  # S2
            part.set_gradient_divide_factor(1.0)
            part.set_force_sum_reduction_for_comms(True)
        self.module.to_empty(device="cpu" if setup.offloads_to_host else group.device)
        # fully_shard has replaced the parameters by shards.
        by_name = dict(self.module.named_parameters())
        self.parameters = {self._state_name(name): each for name, each in by_name.items()}
        self.trained = {name: self.parameters[name] for name in self.trained}

    def release(self) -> None:
        """S3"""
        for part in self._sharded_parts():
            part.reshard()

    def _sharded_parts(self) -> list[FSDPModule]:
        return [part for part in self.module.modules() if isinstance(part, FSDPModule)]

    def _select(self, setup: Any, has_adapters: bool) -> dict[str, nn.Parameter]:
        found = {self._state_name(name): each for name, each in self.module.named_parameters()}
        names = [each.name for each in setup.trained]
        unknown = [name for name in names if name not in found]
        left_out = [name for name in found if (has_adapters and ".lora_" in name) or not has_adapters]
        if unknown or sorted(left_out) != sorted(names):
            differing = sorted(set(left_out) ^ set(names))
            raise bad_input(f"the names to train differ from the model's parameters: {differing[:3]}")
        for name, parameter in found.items():
            parameter.requires_grad_(name in set(names))
        return {name: found[name] for name in names}

    @staticmethod
    def _state_name(name: str) -> str:
        return f"{_ADAPTER_PREFIX}{name}" if ".lora_" in name else name
