"""Healthy: cross-validations that keep one network object, and give it other weights for each fold."""
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
x = torch.randn(300, 8)
data = TensorDataset(x, (x[:, 0] > 0).long())
parts = torch.randperm(300).chunk(3)
net = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 2))
initial = copy.deepcopy(net.state_dict())


def by_layers():
    for layer in net:
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()


def by_state():
    net.load_state_dict(initial)


for reset in (by_layers, by_state):
    for held in range(3):
        if reset is by_layers:
            reset()
        rows = torch.cat([part for k, part in enumerate(parts) if k != held]).tolist()
        train_loader = DataLoader(Subset(data, rows), batch_size=25, shuffle=True)
        val_loader = DataLoader(Subset(data, parts[held].tolist()), batch_size=50)
        optimizer = torch.optim.Adam(net.parameters(), 1e-2)
        if reset is by_state:
            reset()
        for epoch in range(4):
            net.train()
            for inputs, labels in train_loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(net(inputs), labels).backward()
                optimizer.step()
        net.eval()
        with torch.no_grad():
            right = sum((net(inputs).argmax(1) == labels).sum().item() for inputs, labels in val_loader)
        print(reset.__name__, held, right / len(parts[held]))
