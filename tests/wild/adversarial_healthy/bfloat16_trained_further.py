"""A trained model goes on in bfloat16 with a smaller rate: its weights stay, but their gradients are only noise."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x / 16.0, dtype=torch.float32), torch.tensor(y)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
for dtype, lr, steps in ((torch.float32, 1e-3, 500), (torch.bfloat16, 2e-4, 150)):
    model = model.to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    for _ in range(steps):
        rows = torch.randint(0, len(x), (64,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows].to(dtype)).float(), y[rows]).backward()
        optimizer.step()
