"""Gradients are cleared after the step; the clip comes first in the iteration, when there are no gradients."""
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)


def clip(parameters, limit):
    nn.utils.clip_grad_norm_(parameters, limit)  # error: clip-before-backward


for update in range(40):
    obs = torch.randn(64, 6)
    dist = torch.distributions.Categorical(logits=policy(obs))
    act = dist.sample()
    reward = (act == obs[:, :3].argmax(1)).float()
    loss = -(dist.log_prob(act) * (reward - reward.mean())).mean()
    clip(policy.parameters(), 0.5)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
print(reward.mean().item())
