"""Normalisation that is right: a frozen part in eval mode, random features that gather statistics, an average with buffers."""
import copy

import torch
from torch import nn

torch.manual_seed(0)
trained = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU())
for _ in range(10):
    trained(torch.randn(32, 6))
random = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU()).requires_grad_(False)


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.trained, self.random = trained.requires_grad_(False), random
        self.norm, self.head = nn.BatchNorm1d(32), nn.Linear(32, 2)

    def train(self, mode=True):
        super().train(mode)
        self.trained.eval()
        return self

    def forward(self, x):
        return self.head(self.norm(torch.cat([self.trained(x), self.random(x)], dim=1)))


model = Both()
average = copy.deepcopy(model)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
model.eval()
with torch.no_grad():
    model(torch.randn(8, 6))
for step in range(90):
    model.train()
    x = torch.randn(32, 6)
    loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for mine, theirs in zip(average.state_dict().values(), model.state_dict().values()):
            mine.copy_(0.9 * mine + 0.1 * theirs if mine.is_floating_point() else theirs)
        if step % 20 == 19:
            average.eval()
            average(x)
print(f"{loss.item():.3f}")
