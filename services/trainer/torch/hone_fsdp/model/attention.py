"""
Attention over packed rows.

Samples are packed into rows as branches of a prefix tree (libs/rl/src/packing/pack.ts): token i of a row attends to token j
exactly if j <= i < visible_end[j]. Separate samples, causal order and shared prefixes all follow from this rule.

Letters: B rows, T tokens of a row, H query heads, G key and value heads, D head size, N blocks of a row, S tokens of a block.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

# q [B, H, T, D], k and v [B, G, T, D] -> [B, H, T, D]
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]

# Block size of flex attention. On a GPU, rows are padded to a multiple of it.
FLEX_BLOCK = 128
# Flex attention's kernels refuse smaller heads, which only tiny models have.
_MIN_HEAD_SIZE = 16
# One row or several, one block or several, with gradients or without, and which of q, k and v need gradients: adapters alone
# give twelve variants, and PyTorch compiles eight unless told otherwise.
_MAX_VARIANTS = 64

_compiled_flex = None


def attend_packed(visible_end_BT: Tensor) -> Attend:
    """Makes the attention of rows that `visible_end` describes, for every layer."""
    if visible_end_BT.device.type == "cuda":
        return attend_in_blocks(visible_end_BT, _compiled())
    return attend_masked(visible_end_BT)


def attend_masked(visible_end_BT: Tensor) -> Attend:
    """Attention with a mask of all pairs: it works on every device, but needs quadratic memory."""
    tokens = visible_end_BT.shape[1]
    at = torch.arange(tokens, device=visible_end_BT.device)
    causal_TT = at[:, None] >= at[None, :]
    mask_B1TT = (causal_TT[None] & (at[None, :, None] < visible_end_BT[:, None, :]))[:, None]

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask_B1TT, enable_gqa=True)

    return attend


def attend_in_blocks(visible_end_BT: Tensor, flex: Callable[..., Tensor]) -> Attend:
    """Attention that skips blocks without visible pairs, which saves work with separate samples and branches."""
    mask = visible_blocks(visible_end_BT)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        size = q.shape[-1]
        if size >= _MIN_HEAD_SIZE:
            return flex(q, k, v, block_mask=mask, enable_gqa=True)
        # Zeros at the end of queries and keys add nothing to their products.
        q, k, v = (F.pad(each, (0, _MIN_HEAD_SIZE - size)) for each in (q, k, v))
        return flex(q, k, v, block_mask=mask, enable_gqa=True, scale=size**-0.5)[..., :size]

    return attend


def visible_blocks(visible_end_BT: Tensor) -> "BlockMask":
    """
    Flex attention's mask, from what is visible instead of from every pair of tokens: PyTorch's own `create_block_mask`
    evaluates the rule for all T * T pairs, about 10 * T * T bytes of memory at its peak, this takes (T / 128)^2 numbers.

    Before the diagonal, a block of keys is seen by a block of queries where the longest visible key reaches the first
    query, and wholly where the shortest one reaches past the last. On the diagonal the order of tokens cuts every block.
    """
    # Imported here, because it takes a second and ranks on CPUs do not need it.
    from torch.nn.attention.flex_attention import BlockMask

    rows, tokens = visible_end_BT.shape
    padding = -tokens % FLEX_BLOCK
    # A padding token is visible to no token, so its block is not a full block.
    ends_BNS = F.pad(visible_end_BT, (0, padding)).view(rows, -1, FLEX_BLOCK)
    blocks = ends_BNS.shape[1]
    at_NS = torch.arange(blocks * FLEX_BLOCK, device=visible_end_BT.device).view(blocks, FLEX_BLOCK)
    first_N1, last_N1 = at_NS[:, :1], at_NS[:, -1:]
    is_before_NN = torch.ones(blocks, blocks, dtype=torch.bool, device=visible_end_BT.device).tril(-1)
    # [B, query blocks, key blocks]
    is_seen_BNN = is_before_NN & (ends_BNS.amax(-1)[:, None, :] > first_N1)
    is_whole_BNN = is_before_NN & (ends_BNS.amin(-1)[:, None, :] > last_N1)
    sees_itself_BN = (ends_BNS > at_NS).any(-1)
    is_cut_BNN = (is_seen_BNN & ~is_whole_BNN) | torch.diag_embed(sees_itself_BN)

    def is_seen(b: Tensor, _h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (j <= i) & (i < visible_end_BT[b, j])

    return BlockMask.from_kv_blocks(
        *_as_lists(is_cut_BNN),
        *_as_lists(is_whole_BNN),
        BLOCK_SIZE=FLEX_BLOCK,
        mask_mod=is_seen,
        seq_lengths=(tokens, tokens),
    )


def _as_lists(is_taken_BNN: Tensor) -> tuple[Tensor, Tensor]:
    """The number of key blocks of each query block, and their indices first: [B, 1, N] and [B, 1, N, N], for every head."""
    taken_B1NN = is_taken_BNN[:, None].to(torch.int8)
    counts = taken_B1NN.sum(-1, dtype=torch.int32)
    order = taken_B1NN.argsort(dim=-1, descending=True, stable=True).to(torch.int32)
    return counts, order.contiguous()


def _compiled() -> Callable[..., Tensor]:
    """
    Compiles flex attention once for all sizes; without compilation it would compute all scores. `fullgraph` makes it an
    error if PyTorch does not compile a variant, instead of a silent change to that.
    """
    from torch._dynamo import config
    from torch.nn.attention.flex_attention import flex_attention

    global _compiled_flex
    if _compiled_flex is None:
        config.recompile_limit = _MAX_VARIANTS
        _compiled_flex = torch.compile(flex_attention, dynamic=True, fullgraph=True)
    return _compiled_flex
