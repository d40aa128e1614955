"""From "PyTorch Gradient Accumulation - 200 Epoch Silent Failure", section Installation.

Repaired: the signs of the comments. Expected: nothing.
"""
# io.thecodeforge: ml-ai tutorial

import torch

print(f"PyTorch version: {torch.__version__}")
print(f"CUDA available: {torch.cuda.is_available()}")
print(f"CUDA version: {torch.version.cuda if torch.cuda.is_available() else 'N/A'}")
print(f"MPS available: {torch.backends.mps.is_available()}")
