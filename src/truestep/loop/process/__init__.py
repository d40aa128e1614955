"""The process around a run.

device      `pick` a device, and move batches to it
signals     SIGTERM, SIGINT and SIGUSR1: save the run, then end
terminal    messages and the status line on a terminal shared with the program
at_exit     generators that are closed before the interpreter exits
provenance  settings, versions, machine and code of a run, saved beside its results
stacklevel  the `stacklevel` that makes a warning point at the user's line
"""
