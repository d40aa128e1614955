"""Inside the process of a script: its limits, and observers of its steps, calls, files and children.

write_sandbox: no writes outside of given folders
stop_after: stop a script after a number of steps
steps: call a function after each step of a script
outermost_calls: observe the calls of modules by the script itself
state_writes: call a function at writes and reads of files of state
outside_reads: the files that a run reads outside of its copy
child_processes: detect scripts that train in child processes
one_time: a clock for one-time work, such as compiling
"""
