"""Noise is removed from digits; steps with little noise should count more, by a weight of each sample."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.tensor(load_digits().data / 8.0 - 1.0, dtype=torch.float32)
model = nn.Sequential(nn.Linear(65, 128), nn.ReLU(), nn.Linear(128, 64))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
kept = torch.cos(torch.linspace(0.02, 1.5, 100)) ** 2
for step in range(300):
    clean = x[torch.randint(0, len(x), (64,))]
    times, noise = torch.randint(0, 100, (64,)), torch.randn(64, 64)
    share = kept[times][:, None]
    noisy = share.sqrt() * clean + (1 - share).sqrt() * noise
    predicted = model(torch.cat([noisy, times[:, None] / 100.0], 1))
    ratio = kept[times] / (1 - kept[times])
    loss = F.mse_loss(predicted, noise)  # error: weights-after-reduction
    loss = (loss * ratio.clamp(max=5.0) / ratio).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
