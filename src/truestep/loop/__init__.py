"""The loop toolkit: what a training loop that you own needs to be right, without hiding it."""
