"""Losses in which each token stands for itself, or for its segment."""
