"""`truestep inspect`: shapes, activations and gradients by layer of one step, and its losses as trees.

inspect: the experiment: the run and its result
rows: the rows of a table of layers, with repeated blocks as one
"""
