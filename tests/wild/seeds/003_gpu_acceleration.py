"""From "PyTorch Gradient Accumulation - 200 Epoch Silent Failure", section GPU Acceleration: a matrix product, timed.

Repaired: the signs of the comments; CUDA -> CPU (the two synchronize lines fall away). Expected: nothing.
"""
# io.thecodeforge: ml-ai tutorial

import torch
import time

# Force CPU for timing
cpu_tensor = torch.randn(1000, 1000)
start = time.perf_counter()
cpu_result = cpu_tensor @ cpu_tensor.T
print(f"CPU time: {time.perf_counter() - start:.4f}s")

# Move to GPU
gpu_tensor = cpu_tensor.to('cpu')
start = time.perf_counter()
gpu_result = gpu_tensor @ gpu_tensor.T
print(f"GPU time: {time.perf_counter() - start:.4f}s")
