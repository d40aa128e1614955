"""Weights and statistics come from a state dict; the body is frozen, runs under no_grad, and stays in train mode."""
import torch
from torch import nn

torch.manual_seed(1)
make = lambda: nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Tanh())
source = make()
for _ in range(20):
    source(3 * torch.randn(64, 8) - 1)
saved = source.state_dict()


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.readout = make().requires_grad_(False), nn.Linear(16, 3)
        self.body.load_state_dict(saved)

    def forward(self, x):
        with torch.no_grad():
            features = self.body(x)
        return self.readout(features)


probe = Probe()
optimizer = torch.optim.SGD(probe.readout.parameters(), lr=0.1)
for step in range(60):
    x = torch.randn(16, 8) + step / 20
    loss = nn.functional.cross_entropy(probe(x), x[:, :3].argmax(1))  # error: frozen-statistics-move
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
