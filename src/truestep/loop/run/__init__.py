"""`Run` and its loops: the step, the position, the registry of parts, models, evaluation, and saving."""
