"""What is exchanged with the trainer: messages of proto/hone/training/v1, the streams that carry them, and the phases of a call."""
