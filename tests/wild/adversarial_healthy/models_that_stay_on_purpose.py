"""Models beside a trained one of the same kind that never change: a reference copy, a random target, last epoch's model."""
import copy

import torch
from torch import nn

torch.manual_seed(0)


def net():
    return nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))


policy, predictor, target = net(), net(), net().requires_grad_(False)
reference = copy.deepcopy(policy).requires_grad_(False)
previous = copy.deepcopy(policy)
optimizer = torch.optim.Adam([*policy.parameters(), *predictor.parameters()], lr=2e-3)
for step in range(120):
    x = torch.randn(32, 8)
    new = policy(x).log_softmax(1)
    with torch.no_grad():
        old, wanted, before = reference(x).log_softmax(1), target(x), previous(x)
    gain = new[:, 0].mean() - 0.1 * (new.exp() * (new - old)).sum(1).mean()
    novelty = (predictor(x) - wanted).square().mean()
    optimizer.zero_grad()
    (novelty - gain).backward()
    optimizer.step()
    if step == 80:
        for one, other in zip(previous.parameters(), policy.parameters()):
            one.data.copy_(other.data)
print(novelty.item(), gain.item(), before.mean().item())
