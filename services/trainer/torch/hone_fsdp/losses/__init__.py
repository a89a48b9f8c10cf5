"""
The losses that workers compute for each trained token (an entry), by the names of libs/rl/src/algorithm, where formulas and
papers stand. A file holds one loss, or losses that share a formula.

Letters: E entries.
"""

from collections.abc import Callable, Mapping

from torch import Tensor

from hone_fsdp.losses.cross_entropy import cross_entropy
from hone_fsdp.losses.kl import kl_abs, kl_k1, kl_k2, kl_k3
from hone_fsdp.losses.selected.clip_cov import clip_cov
from hone_fsdp.losses.selected.kl_cov import kl_cov
from hone_fsdp.losses.sequence.gmpo import gmpo
from hone_fsdp.losses.sequence.gspo import gspo
from hone_fsdp.losses.token.cispo import cispo
from hone_fsdp.losses.token.dppo import dppo_kl, dppo_tv
from hone_fsdp.losses.token.ppo_clip import ppo_clip
from hone_fsdp.losses.token.reinforce import reinforce
from hone_fsdp.losses.token.sapo import sapo
from hone_fsdp.losses.token.squared_distance import dro, kimi15
from hone_fsdp.losses.token.tis import tis
from hone_fsdp.losses.token.topr import topr
from hone_fsdp.losses.value import value

# A function of scores [E] (log-probabilities, or the values of a value head), inputs [E] by name and constants by name that gives the loss of every entry, [E].
Loss = Callable[[Tensor, Mapping[str, Tensor], Mapping[str, float]], Tensor]

LOSSES: Mapping[str, Loss] = {
    "ppo_clip": ppo_clip,
    "gspo": gspo,
    "gmpo": gmpo,
    "sapo": sapo,
    "cispo": cispo,
    "dppo_tv": dppo_tv,
    "dppo_kl": dppo_kl,
    "dro": dro,
    "gpg": reinforce,
    "clip_cov": clip_cov,
    "kl_cov": kl_cov,
    "topr": topr,
    "tis": tis,
    "kimi15": kimi15,
    "reinforce": reinforce,
    "cross_entropy": cross_entropy,
    "kl_k1": kl_k1,
    "kl_abs": kl_abs,
    "kl_k2": kl_k2,
    "kl_k3": kl_k3,
    "value": value,
}
