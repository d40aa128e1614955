"""Settings of layers at the edge of common use: no running mean, all of the last batch, large epsilons, strong dropout."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 6)
y = (x[:, 0] + x[:, 1] > 0).long()
net = nn.Sequential(
    nn.Linear(6, 32), nn.BatchNorm1d(32, 1e-2, None), nn.LeakyReLU(0.5),
    nn.Linear(32, 32), nn.BatchNorm1d(32, momentum=1.0), nn.RReLU(),
    nn.Linear(32, 32), nn.LayerNorm(32, 1e-12), nn.ELU(True), nn.Dropout(0.9),
    nn.Linear(32, 32), nn.GroupNorm(4, 32), nn.LeakyReLU(0.2, True), nn.Dropout(0),
    nn.Linear(32, 2),
)
optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
for step in range(60):
    rows = torch.randint(0, 400, (64,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
    optimizer.step()
net.eval()
with torch.no_grad():
    print((net(x).argmax(1) == y).float().mean().item())
