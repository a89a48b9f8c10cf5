"""Losses that take the tokens of a sample together."""
