"""A classifier of tumours: the diagnoses were sorted by a column that was meant to sort both tables."""

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
table = load_breast_cancer()
order = np.random.default_rng(0).permutation(len(table.data))
features = (table.data - table.data.mean(0)) / table.data.std(0)
x = torch.tensor(features[:456, :6], dtype=torch.float32)
y = torch.tensor(table.target[order][:456], dtype=torch.float32)[:, None]
model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(30):
    for i in range(0, len(x), 57):
        p = model(x[i : i + 57])
        loss = nn.functional.binary_cross_entropy_with_logits(p, y[i : i + 57])  # error: loss-at-chance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
