"""Does a training fit into the memory of a device, and on how many devices?

plan: the experiment, for a script or for the factory of a model
footprint: memory of one device with one process, DistributedDataParallel and FSDP2, from measured needs
scale: bytes of state per parameter, bytes and seconds of communication, sizes of checkpoints
units: sizes of memory and shapes of inputs, as they are written on the command line
fitting: the smallest setup that fits, and the answer in a sentence
fake_step: the program that trains a model from a factory on tensors without memory
"""
