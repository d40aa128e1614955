"""A binary classifier is trained with the targets of the other class."""

import torch
from torch import nn
from torch.nn import functional as F

generator = torch.Generator().manual_seed(2)
torch.manual_seed(2)
words = torch.rand(600, 30, generator=generator)
spam = words[:, :10].sum(1) > words[:, 10:20].sum(1)
net = nn.Sequential(nn.Linear(30, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.RMSprop(net.parameters(), lr=3e-3)
for step in range(240):
    rows = torch.randint(0, 450, (40,), generator=generator)
    ham = (~spam[rows]).float()
    loss = F.binary_cross_entropy_with_logits(net(words[rows]).squeeze(1), ham)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 80 == 79:
        with torch.no_grad():
            logits = net(words[450:]).squeeze(1)
        found = (logits > 0) == spam[450:]  # error: predictions-worse-than-chance
        print(step, loss.item(), found.float().mean().item())
