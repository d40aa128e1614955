"""Runs of a script in child processes: limits, a copy of the folder, and a cache of outcomes.

bench: run variants of a script within limits of time and memory
child: the child process: apply changes, install instruments, run the script
outcome: a variant, and the outcome of its run
outcome_cache: outcomes on disk, so that the same variant does not run twice
ranks: several processes of one script, as torchrun starts them
folder_copy: a temporary copy of the working folder
write_sandbox: no writes outside of given folders
outside_reads: the files that a run reads outside of its copy
child_processes: detect scripts that train in child processes
steps: call a function after each step of a script
stop_after: stop a script after a number of steps
state_writes: call a function at writes and reads of files of state
outermost_calls: observe the calls of modules by the script itself
one_time: a clock for one-time work, such as compiling
message_pipe: JSON objects between two processes
absent: the error of a run without steps
"""
