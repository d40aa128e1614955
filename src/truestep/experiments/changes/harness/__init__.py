"""Changes that experiments need for themselves: seeds, first batches, a kill, other learning rates."""
