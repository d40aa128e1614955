"""An accuracy over all test batches is divided by the size of the last one."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(560, 4)
y = x.argmax(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 20), nn.ReLU(), nn.Linear(20, 4))

    def forward(self, rows):
        return self.layers(rows)


def test(net, batches):
    net.eval()
    total = 0
    correct = 0
    for rows, labels in batches:
        with torch.no_grad():
            chosen = net(rows).argmax(dim=1)
        total = labels.size(0)  # error: sum-overwritten
        correct += (chosen == labels).sum().item()
    return correct / total


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
batches = list(zip(x[400:].split(40), y[400:].split(40), strict=True))
for _ in range(4):
    net.train()
    for index in torch.randperm(400).split(40):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x[index]), y[index]).backward()
        optimizer.step()
    print(f"accuracy {test(net, batches):.3f}")
