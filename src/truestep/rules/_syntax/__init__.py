"""Functions behind `Rule.inspect`, by subject: failures that the syntax of a file shows.

- `advice`: statements that the documentation of torch advises against.
- `data`: loaders, splits, workers, results and metrics.
- `models`: layers, losses, graphs and parameters.
- `named`: statements that only name a method.
- `steps`: order of a training loop, its modes and schedules.
- `stored`: files of `torch.save` and `torch.load`.
"""
