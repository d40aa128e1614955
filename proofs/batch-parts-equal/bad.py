"""Learn features from two noisy views of each sample, then classify them by a linear layer."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
centers = torch.randn(6, 4) @ torch.randn(4, 40)
kinds = torch.randint(0, 6, (1500,))
samples = centers[kinds] + 2.0 * torch.randn(1500, 40)


def views(batch):
    one = batch + 2.0 * torch.randn_like(batch)
    other = one.clone()
    return one, other  # error: batch-parts-equal


encoder = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 8))
optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
for _step in range(400):
    first, second = views(samples[torch.randint(0, 1500, (128,))])
    one, two = F.normalize(encoder(first), dim=1), F.normalize(encoder(second), dim=1)
    loss = F.cross_entropy(one @ two.t() / 0.2, torch.arange(128))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    features = F.normalize(encoder(samples), dim=1)
    middles = torch.stack([features[:300][kinds[:300] == kind].mean(0) for kind in range(6)])
    accuracy = ((features[300:] @ middles.t()).argmax(1) == kinds[300:]).float().mean()
print(f"result: {accuracy.item():.4f}")
