"""Tell which of two spots of different colours is on the left; the pictures are stored with their channels last."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
labels = torch.randint(0, 2, (1200,))
pictures = 2 * F.avg_pool2d(torch.randn(1200, 3, 28, 28), 5, 1)
axis, side = torch.arange(24.0), 2.5 * (2 * labels - 1)
x, y = 4 + 16 * torch.rand(1200, 1, 1), 4 + 16 * torch.rand(1200, 1, 1)
for channel, way in enumerate((side, -side)):
    near = (axis - x - way.view(-1, 1, 1)).square() + (axis.view(-1, 1) - y).square()
    pictures[:, channel] += 2 * torch.exp(-near / 4)
stored = pictures.permute(0, 2, 3, 1).contiguous()  # samples, height, width, channel, as in a file of pictures

images = stored.reshape(-1, 3, 24, 24)  # error: view-instead-of-permute

model = nn.Sequential(
    nn.Conv2d(3, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 16, 3), nn.ReLU(),
    nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(16, 2),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _epoch in range(6):
    for chosen in torch.randperm(900).split(30):
        optimizer.zero_grad()
        F.cross_entropy(model(images[chosen]), labels[chosen]).backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    right = (model(images[900:]).argmax(1) == labels[900:]).float().mean().item()
print(f"result: {right:.4f}")
