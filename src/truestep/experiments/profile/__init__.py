"""`truestep profile`: time and memory of a step, and what dominates them."""
