"""Parts that the commands of experiments share.

- `experiment`: options that all have, progress on the terminal, pictures.
- `stopping`: exit codes, and a clean end on a signal.
"""
