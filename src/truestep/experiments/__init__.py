"""Experiments: the user's unmodified script, run again in child processes with one thing changed, and compared."""
