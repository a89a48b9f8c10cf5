"""The decoder: its layers, attention over packed rows, and the log-probabilities of its tokens."""
