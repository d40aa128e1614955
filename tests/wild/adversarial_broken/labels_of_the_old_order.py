"""The data set reads its inputs through an index, and its labels without it."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(3)


class Shapes(Dataset):
    def __init__(self, count):
        kind = torch.arange(count) * 3 // count
        self.inputs = torch.randn(count, 1, 6, 6) * 0.3 + torch.eye(6)[kind * 2].reshape(count, 1, 1, 6)
        self.kind = kind
        self.order = torch.randperm(count)

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, index):
        return self.inputs[self.order[index]], self.kind[index]


def build():
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))


def fit(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_function = nn.CrossEntropyLoss()
    for _ in range(epochs):
        losses = []
        for inputs, kinds in loader:
            loss = loss_function(model(inputs), kinds)  # error: loss-at-chance
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(sum(losses) / len(losses))


fit(build(), DataLoader(Shapes(900), batch_size=45, shuffle=True), 9)
