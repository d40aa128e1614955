"""A small network learns to separate two spirals by plain gradient descent."""

import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)


def spirals(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    label = torch.randint(0, 2, (n,))
    turn = torch.rand(n).sqrt() * 2 * torch.pi
    angle = turn + torch.pi * label
    points = torch.stack([angle.cos(), angle.sin()], dim=1) * turn[:, None] / 4
    return points + 0.05 * torch.randn(n, 2), label


x_train, y_train = spirals(1024)
x_test, y_test = spirals(1000)
model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.4, momentum=0.9)

for _epoch in range(30):
    for rows in torch.randperm(1024).split(32):
        loss = criterion(model(x_train[rows]), y_train[rows])
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        loss.backward()  # error: loss-differentiated-twice
        optimizer.step()

model.eval()
with torch.no_grad():
    accuracy = (model(x_test).argmax(dim=1) == y_test).float().mean().item()
print(f"result: {accuracy:.4f}")
