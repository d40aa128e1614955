"""Calls of modules and losses.

module: the probe of calls of modules
model: models and their records
results: uses of results in the source
mode: the probe of `train()` and `eval()`
loss: the probe of losses
label_values: values of targets
target_range: targets beyond the reach of predictions
dropout: the probe of functional dropout
norms: normalization layers
outputs: equal outputs for different inputs
capture: the probe of CUDA graphs
swap: the probe of tensors that exchange contents
"""
