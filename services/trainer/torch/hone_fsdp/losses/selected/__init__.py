"""Losses that choose tokens from the whole minibatch; the choice is an input."""
