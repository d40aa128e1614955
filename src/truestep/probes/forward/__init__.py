"""Calls of modules and losses.

module: the probe of calls of modules
model: models and their records
inputs/: values that models are called on
results: uses of results in the source
mode: the probe of `train()` and `eval()`
losses/: losses, and the values of their targets
dropout: the probe of functional dropout
norms: normalization layers
twins: layers that run in two places, and their twins in none
outputs: equal outputs for different inputs
capture: the probe of CUDA graphs
swap: the probe of tensors that exchange contents
"""
