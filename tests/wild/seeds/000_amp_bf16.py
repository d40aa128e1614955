"""From "PyTorch Training", section Mixed Precision: bfloat16, one step as printed.

Repaired: lost indentation; CUDA -> CPU; data, model and optimizer. Expected: nothing: one step on fresh gradients.
"""
import torch
import torch.nn as nn
from torch.amp import autocast

torch.set_num_threads(1)

inputs = torch.randn(64, 4)
targets = (inputs[:, 0] > inputs[:, 1]).long()
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

with autocast('cpu', dtype=torch.bfloat16):
    outputs = model(inputs)
    loss = criterion(outputs, targets)
loss.backward()  # no scaler needed with bfloat16
optimizer.step()
print(outputs.dtype, loss.dtype)
