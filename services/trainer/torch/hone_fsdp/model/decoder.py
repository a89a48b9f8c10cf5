"""
The decoder of the families Llama, Qwen2 and Qwen3, which differ in biases and norms (libs/nn/src/transformer.ts is the
same model as a graph).

Parameters have the names of Hugging Face's Llama, so that checkpoints need no conversion. Adapters are the parameters
`lora_A.weight` and `lora_B.weight` of a projection, as in PEFT.

Letters: B rows, T tokens of a row, C hidden size, H query heads, G key and value heads, D head size, U positions that
are read, E entries, V vocabulary.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from hone_fsdp.model.attention import Attend, attend_packed
from hone_fsdp.model.head import HeadEntries, HeadScores, score_positions, value_positions


@dataclass(frozen=True)
class Rotation:
    """cosines and sines float32 [B, 1, T, D/2] of the angle position * frequency, each times the model's factor."""

    cosines: Tensor
    sines: Tensor

    def turn(self, x_BHTD: Tensor) -> Tensor:
        first, second = x_BHTD.float().chunk(2, dim=-1)
        turned = (
            first * self.cosines - second * self.sines,
            second * self.cosines + first * self.sines,
        )
        return torch.cat(turned, dim=-1).to(x_BHTD.dtype)


class RmsNorm(nn.Module):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Computes in float32, whatever the type of the layers."""
        return F.rms_norm(x.float(), (x.shape[-1],), eps=self.eps).to(x.dtype) * self.weight


class Matrix(nn.Module):
    """A single weight [out, in]: the embedding, the head, one half of an adapter."""

    def __init__(self, outputs: int, inputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight)


class Projection(nn.Module):
    """y = x W^T + b + (alpha / rank) (x A^T) B^T; bias and adapter if the model has them."""

    def __init__(self, outputs: int, inputs: int, has_bias: bool, adapter: tuple[int, float] | None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs)) if has_bias else None
        self.factor = 0.0
        if adapter is not None:
            rank, alpha = adapter
            self.lora_A = Matrix(rank, inputs)
            self.lora_B = Matrix(outputs, rank)
            self.factor = alpha / rank

    def forward(self, x: Tensor) -> Tensor:
        y = F.linear(x, self.weight, self.bias)
        return y if self.factor == 0 else y + self.lora_B(self.lora_A(x)) * self.factor


class Attention(nn.Module):
    def __init__(self, shape: Any, projection: "ProjectionMaker") -> None:
        super().__init__()
        self.head_dim = shape.head_dim
        queries = shape.num_heads * shape.head_dim
        keys = shape.num_key_value_heads * shape.head_dim
        self.q_proj = projection("self_attn.q_proj", queries, shape.hidden_size)
        self.k_proj = projection("self_attn.k_proj", keys, shape.hidden_size)
        self.v_proj = projection("self_attn.v_proj", keys, shape.hidden_size)
        self.o_proj = projection("self_attn.o_proj", shape.hidden_size, queries)
        self.q_norm = RmsNorm(shape.head_dim, shape.rms_norm_eps) if shape.has_qk_norm else None
        self.k_norm = RmsNorm(shape.head_dim, shape.rms_norm_eps) if shape.has_qk_norm else None

    def forward(self, x_BTC: Tensor, rotation: Rotation, attend: Attend) -> Tensor:
        rows, tokens, _ = x_BTC.shape

        def heads(flat: Tensor, norm: RmsNorm | None) -> Tensor:
            split = flat.view(rows, tokens, -1, self.head_dim)
            return (split if norm is None else norm(split)).transpose(1, 2)

        q_BHTD = rotation.turn(heads(self.q_proj(x_BTC), self.q_norm))
        k_BGTD = rotation.turn(heads(self.k_proj(x_BTC), self.k_norm))
        mixed_BHTD = attend(q_BHTD, k_BGTD, heads(self.v_proj(x_BTC), None))
        return self.o_proj(mixed_BHTD.transpose(1, 2).reshape(rows, tokens, -1))


class FeedForward(nn.Module):
    """down(silu(gate(x)) * up(x)), SwiGLU (https://arxiv.org/abs/2002.05202)."""

    def __init__(self, shape: Any, projection: "ProjectionMaker") -> None:
        super().__init__()
        self.gate_proj = projection("mlp.gate_proj", shape.intermediate_size, shape.hidden_size)
        self.up_proj = projection("mlp.up_proj", shape.intermediate_size, shape.hidden_size)
        self.down_proj = projection("mlp.down_proj", shape.hidden_size, shape.intermediate_size)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    """A layer; with `recomputes` it keeps only its input, and computes the rest again in the backward pass."""

    def __init__(self, shape: Any, projection: "ProjectionMaker", recomputes: bool) -> None:
        super().__init__()
        self.recomputes = recomputes
        self.self_attn = Attention(shape, projection)
        self.mlp = FeedForward(shape, projection)
        self.input_layernorm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)
        self.post_attention_layernorm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)

    def forward(self, x_BTC: Tensor, rotation: Rotation, attend: Attend) -> Tensor:
        if self.recomputes and torch.is_grad_enabled():
            return checkpoint(
                self._compute, x_BTC, rotation, attend, use_reentrant=False, preserve_rng_state=False
            )
        return self._compute(x_BTC, rotation, attend)

    def _compute(self, x_BTC: Tensor, rotation: Rotation, attend: Attend) -> Tensor:
        x_BTC = x_BTC + self.self_attn(self.input_layernorm(x_BTC), rotation, attend)
        return x_BTC + self.mlp(self.post_attention_layernorm(x_BTC))


class Decoder(nn.Module):
    def __init__(self, shape: Any, projection: "ProjectionMaker", recomputes: bool) -> None:
        super().__init__()
        self.embed_tokens = Matrix(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(Block(shape, projection, recomputes) for _ in range(shape.num_layers))
        self.norm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)


class CausalModel(nn.Module):
    """
    The whole model, with a head over the vocabulary or a value head. It must be called only by its forward, around which
    fully_shard gathers weights.
    """

    def __init__(self, shape: Any, adapters: Any | None, recomputes: bool) -> None:
        """@param shape, adapters the messages ModelShape and AdapterShape"""
        super().__init__()
        projection = ProjectionMaker(shape, adapters)
        self.model = Decoder(shape, projection, recomputes)
        self.score = Projection(1, shape.hidden_size, True, None) if shape.has_value_head else None
        has_own_head = not (shape.is_tied or shape.has_value_head)
        self.lm_head = Matrix(shape.vocab_size, shape.hidden_size) if has_own_head else None
        self.frequencies = [float(value) for value in shape.rotary_frequencies]
        self.rotary_factor = float(shape.rotary_factor)

    def forward(
        self, token_ids_BT: Tensor, position_ids_BT: Tensor, visible_end_BT: Tensor, entries: HeadEntries
    ) -> HeadScores:
        attend = attend_packed(visible_end_BT)
        rotation = self._rotation(position_ids_BT)
        x_BTC = F.embedding(token_ids_BT, self.model.embed_tokens.weight)
        for layer in self.model.layers:
            x_BTC = layer(x_BTC, rotation, attend)
        read_UC = self.model.norm(x_BTC).flatten(0, 1)[entries.positions]
        if self.score is not None:
            return value_positions(self.score(read_UC), entries)
        head = self.model.embed_tokens if self.lm_head is None else self.lm_head
        return score_positions(read_UC, head.weight, entries)

    def _rotation(self, position_ids_BT: Tensor) -> Rotation:
        frequencies = torch.tensor(self.frequencies, dtype=torch.float32, device=position_ids_BT.device)
        angles = position_ids_BT[:, None, :, None].float() * frequencies
        return Rotation(angles.cos() * self.rotary_factor, angles.sin() * self.rotary_factor)


class ProjectionMaker:
    """Makes the projections of a layer by their names in it."""

    def __init__(self, shape: Any, adapters: Any | None) -> None:
        self._biased = frozenset(shape.biased_projections)
        self._adapted = frozenset() if adapters is None else frozenset(adapters.projections)
        self._adapter = None if adapters is None else (int(adapters.rank), float(adapters.alpha))

    def __call__(self, name: str, outputs: int, inputs: int) -> Projection:
        adapter = self._adapter if name in self._adapted else None
        return Projection(outputs, inputs, name in self._biased, adapter)
