"""What an update minimises, and how it changes the weights."""
