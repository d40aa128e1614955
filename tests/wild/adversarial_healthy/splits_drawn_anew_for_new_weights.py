"""Repeated random splits of one data set: each begins with new weights, in the same model and optimizer or in new ones."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, SubsetRandomSampler, TensorDataset

torch.manual_seed(0)
x = torch.randn(160, 6)
data = TensorDataset(x, (x.sum(1) > 0).long())


def make():
    return nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))


def fit(model, optimizer, train):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    return sum((model(inputs).argmax(1) == labels).sum().item() for inputs, labels in loader)


def splits():
    for _ in range(3):
        order = torch.randperm(len(data)).tolist()
        yield order[:120], order[120:]


model = make()
initial = copy.deepcopy(model.state_dict())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for chosen, left in splits():
    model.load_state_dict(initial)
    fit(model, optimizer, DataLoader(data, batch_size=20, sampler=SubsetRandomSampler(chosen)))
    print(accuracy(model, DataLoader(data, batch_size=20, sampler=SubsetRandomSampler(left))))

for chosen, left in splits():
    for layer in model:
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    fit(model, optimizer, DataLoader(Subset(data, chosen), batch_size=20, shuffle=True))
    print(accuracy(model, DataLoader(Subset(data, left), batch_size=20)))

for chosen, left in splits():
    model = make()
    optimizer = torch.optim.Adam(model.parameters())
    fit(model, optimizer, DataLoader(Subset(data, chosen), batch_size=20, shuffle=True))
    print(accuracy(model, DataLoader(Subset(data, left), batch_size=20)))
