"""Weights and the optimizer's state, between shards and files."""
