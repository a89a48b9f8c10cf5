"""
The losses that workers compute for each trained token (an entry), by the names of libs/rl/src/algorithm, where formulas and
papers stand. A file holds one loss.

Letters: E entries.
"""

from collections.abc import Callable, Mapping

from torch import Tensor

from hone_fsdp.losses.cross_entropy import cross_entropy
from hone_fsdp.losses.kl import kl_k1, kl_k2, kl_k3
from hone_fsdp.losses.ppo_clip import ppo_clip

# A function of log-probabilities [E], inputs [E] by name and constants by name that gives the loss of every entry, [E].
Loss = Callable[[Tensor, Mapping[str, Tensor], Mapping[str, float]], Tensor]

LOSSES: Mapping[str, Loss] = {
    "ppo_clip": ppo_clip,
    "cross_entropy": cross_entropy,
    "kl_k1": kl_k1,
    "kl_k2": kl_k2,
    "kl_k3": kl_k3,
}
