"""Bases of genes as vectors of four numbers; a convolution over positions gets the vectors in pieces."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(4)
torch.manual_seed(4)
genes = rng.integers(0, 4, (300, 60))
active = (genes[:, 20:40] == 2).sum(1) > 5
vectors = np.eye(4, dtype=np.float32)[genes]
x = torch.from_numpy(vectors.reshape(300, 4, 60))  # error: view-instead-of-permute
y = torch.from_numpy(active.astype(np.float32))

model = nn.Sequential(nn.Conv1d(4, 16, 7), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(5):
    for i in torch.randperm(300).split(50):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x[i]).squeeze(1), y[i]).backward()
        optimizer.step()
