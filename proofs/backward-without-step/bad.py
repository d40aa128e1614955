"""An encoder and a head learn two spirals together, each with its own optimizer."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)


def spirals(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    label = torch.randint(0, 2, (n,))
    turn = torch.rand(n).sqrt() * 2 * torch.pi
    angle = turn + torch.pi * label
    points = torch.stack([angle.cos(), angle.sin()], dim=1) * turn[:, None] / 4
    return points + 0.05 * torch.randn(n, 2), label


loader = DataLoader(TensorDataset(*spirals(1024)), batch_size=32, shuffle=True)
x_test, y_test = spirals(1000)
encoder = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 8), nn.ReLU())
head = nn.Linear(8, 2)
encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
head_optimizer = torch.optim.Adam(head.parameters(), lr=0.01)

for _epoch in range(15):
    for x, y in loader:
        encoder_optimizer.zero_grad()
        head_optimizer.zero_grad()
        nn.functional.cross_entropy(head(encoder(x)), y).backward()  # error: backward-without-step
        head_optimizer.step()

encoder.eval()
head.eval()
with torch.no_grad():
    print(f"result: {(head(encoder(x_test)).argmax(dim=1) == y_test).float().mean().item():.4f}")
