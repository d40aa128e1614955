"""The evaluation of a regression keeps the predictions and targets of its last batch, and measures those alone."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
x = torch.randn(500, 6)
y = x[:, 0] - 0.5 * x[:, 1] + 0.2 * torch.randn(500)
train = DataLoader(TensorDataset(x[:350], y[:350]), batch_size=25, shuffle=True)
valid = DataLoader(TensorDataset(x[350:], y[350:]), batch_size=40)
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)


def errors():
    net.eval()
    with torch.no_grad():
        for inputs, actual in valid:
            predicted = net(inputs).squeeze(1)  # error: sum-overwritten
    net.train()
    return (predicted - actual).abs().mean().item(), nn.functional.mse_loss(predicted, actual).item()


for epoch in range(5):
    for inputs, targets in train:
        loss = nn.functional.mse_loss(net(inputs).squeeze(1), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, *errors())
