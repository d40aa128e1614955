"""Runs of a script in child processes: limits, a copy of the folder, and a cache of outcomes.

bench: run variants of a script within limits of time and memory
child: the child process: apply changes, install instruments, run the script
inside: limits and observers in the process of the script
outcome: a variant, and the outcome of its run
outcome_cache: outcomes on disk, so that the same variant does not run twice
ranks: several processes of one script, as torchrun starts them
folder_copy: a temporary copy of the working folder
message_pipe: JSON objects between two processes
absent: the error of a run without steps
"""
