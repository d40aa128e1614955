"""Runs of a script in child processes: a copy of its folder, limits, instruments, a cache of outcomes."""
