"""Ratios of probabilities."""

from torch import Tensor

# Largest |log ratio| before the exponential, so that products stay finite; it is beyond every clip range.
MAX_LOG_RATIO = 20.0


def log_ratio(logprob: Tensor, other: Tensor) -> Tensor:
    """log(probability / other probability), bounded."""
    return (logprob - other).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
