"""
Attention over packed rows.

Samples lie in rows as branches of a prefix tree (libs/rl/src/packing/pack.ts): token i of a row sees token j exactly
where j <= i < visible_end[j]. Separate samples, causal order and shared prefixes all follow from that one rule.

Letters: B rows, T tokens of a row, H query heads, G key and value heads, D head size.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

# q [B, H, T, D], k and v [B, G, T, D] -> [B, H, T, D]
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]

# Rows are padded to a multiple of it on a GPU: the size of flex attention's blocks.
FLEX_BLOCK = 128

_compiled_flex = None


def attend_packed(visible_end_BT: Tensor) -> Attend:
    """Attention of the rows that `visible_end` describes, for every layer."""
    if visible_end_BT.device.type == "cuda":
        return attend_in_blocks(visible_end_BT, _compiled())
    return attend_masked(visible_end_BT)


def attend_masked(visible_end_BT: Tensor) -> Attend:
    """With a mask of every pair: exact everywhere, but quadratic in memory."""
    tokens = visible_end_BT.shape[1]
    at = torch.arange(tokens, device=visible_end_BT.device)
    causal_TT = at[:, None] >= at[None, :]
    mask_B1TT = (causal_TT[None] & (at[None, :, None] < visible_end_BT[:, None, :]))[:, None]

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask_B1TT, enable_gqa=True)

    return attend


def attend_in_blocks(visible_end_BT: Tensor, flex: Callable[..., Tensor]) -> Attend:
    """With blocks that nobody sees left out: what separate samples and branches save."""
    # Not at the top: it takes a second to import, and ranks on CPUs never need it.
    from torch.nn.attention.flex_attention import create_block_mask

    rows, tokens = visible_end_BT.shape

    def is_seen(b: Tensor, _h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (j <= i) & (i < visible_end_BT[b, j])

    mask = create_block_mask(is_seen, rows, None, tokens, tokens, device=visible_end_BT.device)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return flex(q, k, v, block_mask=mask, enable_gqa=True)

    return attend


def _compiled() -> Callable[..., Tensor]:
    """Uncompiled, flex attention makes all scores; compiled once, for every size."""
    from torch.nn.attention.flex_attention import flex_attention

    global _compiled_flex
    if _compiled_flex is None:
        _compiled_flex = torch.compile(flex_attention, dynamic=True)
    return _compiled_flex
