"""Labels that leave 0 to 1 and are right: noisy smoothing, masked gaps, rewards times actions, a task without labels."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for step in range(30):
    x = torch.randn(32, 8)
    logits = model(x)
    smooth = torch.where(x[:, :4] > 0, 0.7 + 0.5 * torch.rand(32, 4), 0.3 * torch.rand(32, 4) - 0.1)
    loss = F.binary_cross_entropy_with_logits(logits, smooth)

    gaps = torch.where(torch.rand(32, 4) < 0.3, -1.0, (x[:, :4] > 0).float())
    each = F.binary_cross_entropy_with_logits(logits, gaps, reduction="none")
    loss = loss + each[gaps >= 0].mean()
    loss = loss + F.binary_cross_entropy_with_logits(logits, gaps, weight=(gaps >= 0).float())

    labelled = float(step % 3 == 0)
    other = (x[:, 4:] > 0).float() if labelled else torch.full((32, 4), -1.0)
    loss = loss + labelled * F.binary_cross_entropy_with_logits(logits, other)

    actions = torch.distributions.Categorical(logits=logits.detach()).sample()
    advantages = torch.where(actions == 0, 1.0, -1.0)
    loss = loss + 0.1 * F.cross_entropy(logits, advantages[:, None] * F.one_hot(actions, 4))
    loss = loss + 0.1 * F.cross_entropy(logits, 3.0 * F.one_hot(x[:, :4].argmax(1), 4).float())

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
