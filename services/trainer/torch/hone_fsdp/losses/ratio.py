"""Ratios of probabilities."""

from torch import Tensor

# Largest |log ratio| that enters an exponential: its products stay finite, and no clip range reaches it.
MAX_LOG_RATIO = 20.0


def log_ratio(logprob: Tensor, other: Tensor) -> Tensor:
    """log(probability / other probability), bounded."""
    return (logprob - other).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
