"""Base classes and shared code of changes.

change: base class of all changes
discovery: find the changes of a package
aimed: base of changes at the lines of findings
calls: base of changes around calls of modules
speedup: base of speed-ups
loader_arguments: base of speed-ups that change arguments of loaders
model_changes: base of speed-ups that change each model at its first call
schedules: base of changes of schedules
optimizers: optimizers of a script, and the parameters that a backward pass reaches
passes: begin and end of passes over loaders
sources: the inputs that a tensor was computed from
streams: the streams of training data of a script
"""
