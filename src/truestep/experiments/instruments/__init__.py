"""The measurements of a variant of a run: one instrument per file.

inference: latency of the script's model
layers: layers, gradients and losses of one step
learning: learning rates, trained weights and targets
needs: memory that a step needs
losses: loss and gradient norm of every step
watched: findings and report of a supervised run
profiling: time by line, module and operation, and memory
state: checksums of all state at every step
timing: time by phase, and timed steps in turns

all_instruments: all of them by their names
instrument: base class
model_names: the model that a called module belongs to, and its name in the script
given: losses of the script's backward passes, without the scale of fp16
"""
