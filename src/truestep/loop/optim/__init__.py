"""Optimizers of a run: windows of accumulation, precision, schedules and their length, averages of weights."""
