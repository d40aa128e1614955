"""Rows without targets are scaled together with the training, and their predictions are written to a file."""

import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

rng = np.random.default_rng(7)
torch.manual_seed(7)
known = rng.gamma(2, 2, size=(700, 6)).astype("float32")
asked = rng.gamma(2, 2, size=(300, 6)).astype("float32")
prices = torch.from_numpy((known.sum(axis=1, keepdims=True) + rng.normal(size=(700, 1))).astype("float32"))
both = np.concatenate([known, asked])
scaled = torch.from_numpy((both - both.mean(axis=0)) / both.std(axis=0))
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(10):
    for rows in torch.randperm(700).split(50):
        optimizer.zero_grad()
        F.mse_loss(net(scaled[rows]), prices[rows]).backward()
        optimizer.step()
net.eval()
with torch.no_grad():
    answers = net(scaled[700:]).numpy()
np.savetxt(os.path.join(tempfile.mkdtemp(), "answers.csv"), answers)
