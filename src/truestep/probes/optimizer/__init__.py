"""Optimizers and schedulers.

optimizer: the probe of optimizers: constructors, parameter groups, steps
scheduler: the probe of schedulers
schedule_plans: the learning rates that a schedule was asked for
stepped: values before and after a step
layer_sizes: gradients and updates of the weights, at sampled steps
pace: time and memory of the process, at sampled steps
sampled_measures: mixed gradients, and parameters that never change
equal_rows: weights with equal rows
rebuilt: optimizers that are built again over the same parameters
aliases: second names of a trained model
averages: updates of averages
copies: models that were meant to follow a trained one
fresh_weights: weights of a model that is first called late
pass_loops: loops around the construction of an optimizer
schedule_lengths: lengths of schedules in epochs, by their names
"""
