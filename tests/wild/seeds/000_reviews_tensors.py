"""From "PyTorch Training", section Tensors.

Repaired: nothing. Expected: the array behind `t` changes after `from_numpy`, so the tensor changes with it
(it prints as float64, not as the float32 that the document shows).
"""
import torch
# Our three movie reviews as feature vectors (3 samples, 4 features each)
reviews = torch.tensor([
    [0.8, 0.1, 0.9, 0.2],  # positive review
    [0.1, 0.9, 0.2, 0.8],  # negative review
    [0.5, 0.5, 0.5, 0.5],  # ambiguous review
], dtype=torch.float32)
labels = torch.tensor([1, 0, 1], dtype=torch.long)  # 1=positive, 0=negative

import numpy as np
arr = np.array([1.0, 2.0, 3.0])
t = torch.from_numpy(arr)  # shared memory
arr[0] = 99.0  # no rule: ADR 0028
print(t[0])
