"""The inside of one step of a training: the layers of its models, and its losses as trees.

step_layers: the instrument, which inspects a step and stops the script
window: the observations of one step
module_calls: calls of modules in the script: its models, and the places of the calls of their layers
model_facts: an inspection of a model as values for JSON
loss_tree: the terms of a loss, read from the tape before the engine runs
reach: the tape below an operation: the parameters that it reaches, and the memory that it keeps
"""
