"""Profile of time and memory, from samples of the thread and the record of torch's profiler.

profile: the instrument
sampler: the line of the user's code that a thread is running, every millisecond
marks: names of modules, and marks of the profiler around their calls
record: modules, operations with their lines, and memory, from the record of the profiler
memory: memory in use, from the allocations in the record
compilations: graph breaks and recompilations of torch.compile
processors: time that threads spent waiting for a processor
"""
