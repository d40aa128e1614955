"""Tools for a model, each usable alone.

groups, depth, scaling  parameter groups; layers with falling lr; lr for another batch size
freeze, modes, names    frozen parts; train and eval mode; parameters by patterns of names
average, ema, swa       averages of weights: common part, exponential, equal
blocks                  the blocks of a model: of some types, or its repeated ones
recompute, compiling    activation checkpointing; torch.compile in place
table, boundary         the parameters as a table; notes on errors about inputs that do not fit
"""
