import sys

import torch
from torch import nn

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)

x = torch.randn(1000, 6)
y = x.square().mean(1, keepdim=True) + 0.1 * torch.randn(1000, 1)
x[800:806] = 60 * torch.eye(6)  # in the held-out rows, each sensor fails once
least, most = x.amin(0), x.amax(0)
x = (x - least) / (most - least)  # error: scaled-with-evaluation-data
x_train, y_train, x_test, y_test = x[:800].clone(), y[:800], x[800:].clone(), y[800:]

model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(40):
    model.train()
    for rows in torch.randperm(800).split(80):
        loss = nn.functional.mse_loss(model(x_train[rows]), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    error = (model(x_test) - y_test)[6:].square().mean().sqrt()
print(f"result: {error:.4f}")
