"""The pictures of the test are divided by 255 when they are read, and once more before the model is called."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(16)
labels = torch.randint(0, 3, (500,))
pictures = torch.randint(0, 120, (500, 49))
pictures[torch.arange(500), 7 * labels] += 130
train, test = pictures[:400] / 255, pictures[400:] / 255
net = nn.Sequential(nn.Linear(49, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)


def score(batch, targets):
    return F.cross_entropy(net(batch / 255), targets).item()  # error: inputs-on-another-scale


for step in range(300):
    rows = torch.randint(0, 400, (32,))
    loss = F.cross_entropy(net(train[rows]), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        with torch.no_grad():
            print(step, score(test, labels[400:]))
