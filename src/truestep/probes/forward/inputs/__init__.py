"""Values that models are called on.

reads: mean, spread and range of arguments
levels: levels of values that were measured in steps, and normalization with own statistics
"""
