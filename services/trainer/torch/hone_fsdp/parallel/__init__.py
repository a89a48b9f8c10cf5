"""The ranks of a group, and how the model and its batches are spread over them."""
