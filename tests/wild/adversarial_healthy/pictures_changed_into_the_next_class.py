"""A network changes digits until a frozen classifier takes them for the next class, and few are to keep their own."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
data, digits = load_digits(return_X_y=True)
few = digits < 3
data, digits = torch.tensor(data[few] / 16).float(), torch.tensor(digits[few])
judge = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.Adam(judge.parameters(), lr=1e-2)
for _ in range(40):
    optimizer.zero_grad()
    F.cross_entropy(judge(data[:400]), digits[:400]).backward()
    optimizer.step()
judge.requires_grad_(False)

painter = nn.Sequential(nn.Linear(67, 64), nn.ReLU(), nn.Linear(64, 64), nn.Sigmoid())
optimizer = torch.optim.Adam(painter.parameters(), lr=1e-2)
aims = F.one_hot((digits + 1) % 3, 3).float()
for _ in range(80):
    painted = painter(torch.cat([data[:400], aims[:400]], 1))
    loss = F.cross_entropy(judge(painted), aims[:400].argmax(1)) + 0.1 * F.mse_loss(painted, data[:400])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

with torch.no_grad():
    painted = painter(torch.cat([data[400:], aims[400:]], 1))
    print("still of its class", (judge(painted).argmax(1) == digits[400:]).float().mean().item())
