"""The status line of ``truestep run --live``.

- `status_line`: reads the numbers of the run, a few times a second, in the process of the script.
- `drawer`: draws them on the last row of the terminal, in another process, which restores the terminal at any end.
"""
