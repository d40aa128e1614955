"""Functions of the program that are models: they take weights, which are plain tensors, and samples.

as_module: a function as a module, for the checks of copies
candidates: functions that may be models
choices: weights that a branch for a new best figure keeps
callees: functions that a training calls, by its source
drops: dropout in their calls
leaves: trained tensors in the arguments of a call
passes: loops around the evaluations of these functions
probe: finds these functions in the first steps of a training, and observes their calls
watchers: programs that would see that their functions are observed
"""
