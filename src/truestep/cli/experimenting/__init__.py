"""Parts that the commands of experiments share, and the commands that are not beside this room.

- `compare`: two choices of arguments.
- `repeat`: the same arguments again.
- `inspect`: the inside of one step.
- `experiment`: options that all have, progress on the terminal, pictures.
- `stopping`: exit codes, and a clean end on a signal.
"""
