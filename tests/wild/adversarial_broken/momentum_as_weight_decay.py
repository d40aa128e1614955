"""Broken: the momentum is given as the weight decay, which removes all weights within a few steps."""
import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(1)
torch.set_num_threads(1)
digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
net = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, weight_decay=0.9)  # error: optimizer-setting-out-of-range
for epoch in range(4):
    for rows in torch.randperm(1400).split(50):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
