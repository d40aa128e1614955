"""Several processes of one run, started by torchrun: the engine is PyTorch's.

strategy       operations that differ between one process and several ranks; those of a single process
launch         the process group: joined, or made from the environment of torchrun
start          the strategy of a run; actions of rank 0 that the others wait for
data_parallel  every rank has the whole model, and gradients are averaged by the reducer of DistributedDataParallel
fully_sharded  every rank has a part of each parameter: fully_shard
joint_norm     batch normalisation over all ranks
policies       types and place of divided parameters
sharding       the units of a model, checks and copies of it
reducer        that reducer, for the parameters of one optimizer
agreement      signals and time limits, on which all ranks agree between two steps
heartbeat      signs of life of the ranks
silence        errors about ranks that do not answer
sampler        DataLoaders of the program must divide their samples
quiet          ranks other than 0 print nothing
"""
