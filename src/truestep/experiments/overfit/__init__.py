"""`truestep overfit`: the first batch again and again, and why its loss does not fall."""
