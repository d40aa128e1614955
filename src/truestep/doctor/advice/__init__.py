"""Advice on a machine, as functions of its facts.

advice       `Advice` and its levels; sizes and plurals in its text
machine      threads, memory, shared memory, file handles, disk
torch_setup  build of torch, accelerators, formats, torch.compile, several processes
variables    environment variables
"""
