"""Data loading.

loaders: the probe of torch's DataLoader
batches: a description of a batch
loader_times: time that a run waits for its loaders
loop_source: loops that leave after one batch, by their source
processes: the probe of processes that the program starts
sampler_weights: weights of a sampler, next to the labels that a data set holds
seeds: seeds of the global generator
shuffles: tensors and arrays that are shuffled in place
stored_values: values that a data set stores
"""
