"""Values that models are called on.

reads: mean, spread and range of arguments
first_norm: inputs of the first batch normalization next to its statistics
levels: levels of values that were measured in steps, and normalization with own statistics
"""
