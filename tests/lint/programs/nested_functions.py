"""Functions inside functions that share the optimizer and count in an outer variable."""

import torch
from torch import nn


def make_trainer(model, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    seen = 0

    def step(x, y):
        nonlocal seen

        def loss_of(inputs):
            return criterion(model(inputs), y)

        model.zero_grad()
        loss = loss_of(x)
        loss.backward()
        optimizer.step()  # broken[backward-without-step]: pass
        seen += len(x)
        return loss.item(), seen

    def evaluate(loader):
        was = model.training
        model.eval()
        with torch.no_grad():
            values = [criterion(model(x), y).item() for x, y in loader]
        model.train(was)
        return sum(values) / len(values)

    return step, evaluate


def main(train_loader, val_loader):
    model = nn.Sequential(nn.Linear(30, 60), nn.BatchNorm1d(60), nn.ReLU(), nn.Linear(60, 4))
    step, evaluate = make_trainer(model, 0.1)
    for _ in range(20):
        for x, y in train_loader:
            value, seen = step(x, y)
        print(seen, value, evaluate(val_loader))
