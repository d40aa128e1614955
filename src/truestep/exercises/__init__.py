"""Exercises: scripts with one planted failure, and functions to be written.

- `catalogue`: the exercises and their texts in `catalogue.toml` and `functions.toml`.
- `child`: a script in a child process, with a limit of its time.
- `judging`: is the failure of a script mended, and which checks does a written function pass?
- `planted`: the scripts with a planted failure, in folders of data.
- `written`: the functions with their bodies, of which the user gets the docstrings.
- `behaviour`: the checks of the written functions.
"""
