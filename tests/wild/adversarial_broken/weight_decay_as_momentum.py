"""Broken: the third argument of SGD is the momentum; a factory passes its weight decay there."""
import torch
from sklearn.datasets import load_digits
from torch import nn, optim

torch.manual_seed(2)
torch.set_num_threads(1)


def make_optimizer(name, parameters, lr, decay):
    if name == "adam":
        return optim.Adam(parameters, lr, weight_decay=decay)
    return optim.SGD(parameters, lr, decay)  # error: optimizer-setting-out-of-range


digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
net = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = make_optimizer("sgd", net.parameters(), 0.05, 5e-4)
for epoch in range(3):
    for rows in torch.randperm(1400).split(50):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
