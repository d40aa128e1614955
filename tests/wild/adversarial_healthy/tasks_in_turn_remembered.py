"""Healthy: tasks in turn with an optimizer each; after each task, the accuracy on samples of all tasks, trained or held out."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 2))


def task(number):
    x = torch.randn(240, 6)
    return TensorDataset(x, (x[:, number] + 0.5 * x[:, number + 1] > 0).long())


def accuracy(data, rows):
    loader = DataLoader(Subset(data, list(rows)), batch_size=60)
    net.eval()
    with torch.no_grad():
        right = sum((net(inputs).argmax(1) == labels).sum().item() for inputs, labels in loader)
    net.train()
    return right / len(rows)


tasks = [task(number) for number in range(4)]
for number, data in enumerate(tasks):
    optimizer = torch.optim.Adam(net.parameters(), 5e-3)
    for epoch in range(3):
        for inputs, labels in DataLoader(Subset(data, list(range(180))), batch_size=30, shuffle=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(inputs), labels).backward()
            optimizer.step()
    kept = [round(accuracy(one, range(180)), 2) for one in tasks[: number + 1]]
    new = [round(accuracy(one, range(180, 240)), 2) for one in tasks]
    print("trained samples", kept, "held out", new)
