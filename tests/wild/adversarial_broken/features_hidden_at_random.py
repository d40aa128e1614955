"""Broken: features are hidden at random, and the network is compared with what is left of them."""

import torch
import torch.nn as nn
from sklearn.datasets import load_breast_cancer

torch.manual_seed(0)
table = torch.tensor(load_breast_cancer().data, dtype=torch.float32)
table = (table - table[:400].mean(0)) / table[:400].std(0)
known, new = table[:400], table[400:]
model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 30))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for _ in range(60):
    for rows in torch.randperm(400).split(50):
        full = known[rows]
        hidden = torch.rand(full.shape) < 0.3
        partial = full.masked_fill(hidden, 0.0)
        loss = ((model(partial) - partial) ** 2).mean()  # error: reconstructs-the-noise
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    gone = torch.rand(new.shape) < 0.3
    guess = model(new.masked_fill(gone, 0.0))
    print(f"error of hidden features {(guess[gone] - new[gone]).square().mean():.4f}")
