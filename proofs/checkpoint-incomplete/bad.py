"""Train a classifier that standardises its inputs by running statistics, save it, and load it into a new one."""

import io
import sys

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
labels = torch.randint(0, 4, (2000,))
inputs = 300 + 20 * (2 * torch.randn(4, 8)[labels] + torch.randn(2000, 8))


class Standardise(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(8)
        self.spread = torch.ones(8)

    def forward(self, x):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
            self.spread = 0.9 * self.spread + 0.1 * x.std(0)
        return (x - self.mean) / self.spread


model, loaded = (nn.Sequential(Standardise(), nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)) for _ in range(2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _step in range(150):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs[:1000]), labels[:1000]).backward()
    optimizer.step()
with torch.no_grad():
    print(f"{(model.eval()(inputs[1000:]).argmax(1) == labels[1000:]).float().mean():.3f} before it is saved")
file = io.BytesIO()
torch.save(model.state_dict(), file)  # error: checkpoint-incomplete
loaded.load_state_dict(torch.load(io.BytesIO(file.getvalue())))
with torch.no_grad():
    print(f"result: {(loaded.eval()(inputs[1000:]).argmax(1) == labels[1000:]).float().mean():.4f}")
