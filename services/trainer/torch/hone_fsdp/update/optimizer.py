"""
AdamW of torch.optim, which also defines the embedded engine's (libs/train/src/update/adamw.ts): decoupled weight decay, only
on matrices and embeddings, and bias correction of both moments.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


class AdamW:
    """AdamW of parameters by name; its constants come with each update."""

    def __init__(self, parameters: Mapping[str, nn.Parameter], decayed: frozenset[str]) -> None:
        self.parameters = parameters
        groups = [
            {"params": [each for name, each in parameters.items() if (name in decayed) == is_decayed]}
            for is_decayed in (True, False)
        ]
        self._is_decayed = [True, False]
        # On GPUs one kernel updates everything in place. PyTorch's default there computes tensor lists, which need as much memory
        # again as the parameters.
        self._is_fused = all(each.device.type == "cuda" for each in parameters.values())
        # The constants are set at every update.
        self._optimizer = torch.optim.AdamW(groups, lr=0.0, fused=self._is_fused)

    def update(self, options: Any) -> None:
        """Updates the parameters with their gradients. @param options the message AdamW"""
        for group, is_decayed in zip(self._optimizer.param_groups, self._is_decayed, strict=True):
            group["lr"] = options.learning_rate
            group["betas"] = (options.beta1, options.beta2)
            group["eps"] = options.epsilon
            group["weight_decay"] = options.weight_decay if is_decayed else 0.0
        self._optimizer.step()

    def forget(self) -> None:
        """Resets the state to that before the first update."""
        self._optimizer.state.clear()

    def moments(self) -> tuple[int, dict[str, Tensor], dict[str, Tensor]]:
        """Updates made, first and second moments by name, shards like their parameters; made where there are none yet."""
        updates = 0
        first: dict[str, Tensor] = {}
        second: dict[str, Tensor] = {}
        for name, parameter in self.parameters.items():
            state = self._optimizer.state.get(parameter, {})
            updates = int(state["step"]) if "step" in state else 0
            first[name] = state.get("exp_avg", None) if state else torch.zeros_like(parameter)
            second[name] = state.get("exp_avg_sq", None) if state else torch.zeros_like(parameter)
        return updates, first, second

    def resume(self, updates: int, first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> None:
        """Restores the state from the result of `moments`."""
        self.forget()
        if updates == 0:
            return
        for name, parameter in self.parameters.items():
            # The fused kernel reads the number of updates where the parameter is.
            step_device = parameter.device if self._is_fused else None
            self._optimizer.state[parameter] = {
                "step": torch.tensor(float(updates), device=step_device),
                "exp_avg": first[name].detach(),
                "exp_avg_sq": second[name].detach(),
            }
