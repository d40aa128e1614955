"""Gradients of six small batches are to be added up, and each batch clears those before it."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(480, 8)
y = (x[:, 0] - x[:, 1] > 0).float()
loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def one_epoch(window):
    total = 0.0
    optimizer.zero_grad()
    for number, (inputs, wanted) in enumerate(loader, start=1):
        loss = F.binary_cross_entropy_with_logits(model(inputs).squeeze(1), wanted)
        total += loss.item()
        optimizer.zero_grad()  # error: backward-passes-discarded
        (loss / window).backward()
        if number % window == 0:
            optimizer.step()
            optimizer.zero_grad()
    return total / len(loader)


for epoch in range(6):
    print(epoch, one_epoch(window=6))
