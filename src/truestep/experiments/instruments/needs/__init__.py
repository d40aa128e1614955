"""The memory that one step of a training needs.

needs: the instrument
storage_log: allocations and releases of a step in their order, and the moments that can be its peak
recorders: the log from torch's profiler, or from operations on tensors without memory
models: sizes of the parameters, gradients, buffers, optimizer state and blocks of a training
"""
