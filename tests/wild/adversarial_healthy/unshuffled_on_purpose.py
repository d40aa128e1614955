"""Loaders that keep the order on purpose: shuffled before, windows in order of time, and a stream of classes seen once."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def train(model, loader, epochs, loss_fn):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
    return loss.item()


x = torch.randn(240, 6)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
order = torch.randperm(240)
print(train(nn.Linear(6, 3), DataLoader(TensorDataset(x[order], y[order]), batch_size=24), 3, nn.CrossEntropyLoss()))

time = torch.arange(400) / 10
series = torch.sin(time) + 0.1 * torch.randn(400)
windows = series.unfold(0, 12, 1)
next_value = DataLoader(TensorDataset(windows[:, :-1], windows[:, -1:]), batch_size=32, shuffle=False)
print(train(nn.Linear(11, 1), next_value, 3, nn.MSELoss()))

activity = (torch.arange(400) // 50) % 3  # the same three activities come again and again
labelled = DataLoader(TensorDataset(series.unfold(0, 8, 1), activity[:393]), batch_size=32)
print(train(nn.Linear(8, 3), labelled, 3, nn.CrossEntropyLoss()))

by_class = y.argsort()
stream = DataLoader(TensorDataset(x[by_class], y[by_class]), batch_size=10)
print(train(nn.Linear(6, 3), stream, 1, nn.CrossEntropyLoss()))  # class-incremental: every sample is seen once
