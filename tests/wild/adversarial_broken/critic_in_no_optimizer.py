"""Two optimizers, both of the same network: the critic gets gradients, and no optimizer steps it."""
import torch
from torch import nn

torch.manual_seed(1)
maker, critic = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 2)), nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 1))
optimizers = [torch.optim.Adam(net.parameters(), lr=2e-3) for net in (maker, maker)]  # error: parameters-not-optimized
score = nn.BCEWithLogitsLoss()
for step in range(60):
    real, fake = torch.randn(40, 2) + 1, maker(torch.randn(40, 4))
    for optimizer, loss in zip(
        optimizers,
        (score(critic(fake), torch.ones(40, 1)), score(critic(torch.cat([real, fake.detach()])), torch.eye(2).repeat_interleave(40, 0)[:, :1])),
    ):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item())
