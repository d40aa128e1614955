"""Readers of facts about a machine.

system        processors, memory, shared memory and file handles
cgroups       limits of control groups
folders       space and file system of a folder
graphics      GPUs and their driver, without torch
variables     environment variables
packages      installed packages
compilers     the compiler that torch.compile calls
ask_torch     queries to torch in a child process
inside_torch  the queries, in that process
"""
