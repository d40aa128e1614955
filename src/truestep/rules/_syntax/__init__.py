"""What the syntax of a file shows of each failure: the functions behind `Rule.inspect`, by subject.

- `advice`: statements that the documentation of torch advises against.
- `data`: loaders, splits, workers, and what a program computes of its results.
- `models`: layers, losses, graphs and parameters.
- `named`: statements that only name a method.
- `steps`: order of a training loop, its modes and schedules.
"""
