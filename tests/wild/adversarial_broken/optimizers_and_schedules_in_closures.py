"""An optimizer for each batch of a loader, a schedule that is only read, and best weights that are read, not loaded."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
held_out = torch.randn(64, 8)
labels = (held_out[:, 0] > 0).long()


def trainer(model):
    def fit(epochs):
        for _ in range(epochs):
            for inputs, targets in loader:
                optimizer = torch.optim.Adam(model.parameters(), lr=0.01)  # error: optimizer-rebuilt
                loss = nn.functional.cross_entropy(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    return fit


def scheduled(model, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    warmup = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.1)  # error: scheduler-never-stepped
    best, kept = 0.0, None
    for _ in range(epochs):
        model.train()
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(held_out).argmax(1) == labels).float().mean().item()
        if accuracy >= best:
            best, kept = accuracy, copy.deepcopy(model.state_dict())
        print(warmup.get_last_lr(), accuracy)
    model.state_dict(destination=dict(kept))  # error: state-not-loaded
    model.eval()
    with torch.no_grad():
        print((model(held_out).argmax(1) == labels).float().mean().item())


trainer(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)))(4)
scheduled(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)), 5)
