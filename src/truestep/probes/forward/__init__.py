"""Calls of modules and losses.

module: the probe of calls of modules
call_sites: places that call models
inner_calls: calls inside of a model at sampled steps
model: models and their records
layers/: layers inside of models
inputs/: values that models are called on
results: uses of results in the source
mode: the probe of `train()` and `eval()`
losses/: losses, and the values of their targets
dropout: the probe of functional dropout
distributions: the probe of draws from distributions
draws: samples without a gradient
outputs: equal outputs for different inputs
capture: the probe of CUDA graphs
swap: the probe of tensors that exchange contents
"""
