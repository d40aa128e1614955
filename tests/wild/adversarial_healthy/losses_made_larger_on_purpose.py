"""Healthy: negatives of losses: an attack, a patch, a generator that saturates, an objective that is maximised."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
weight = torch.randn(6, 2)


def batch(size=48):
    x = torch.randn(size, 6)
    return x, (x @ weight).argmax(1)


net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
optimizer = torch.optim.SGD(net.parameters(), 0.1, maximize=True)
for step in range(30):  # the log-likelihood is made larger
    x, y = batch()
    optimizer.zero_grad()
    objective = -F.cross_entropy(net(x), y)
    objective.backward()
    optimizer.step()
print(f"objective {objective.item():.3f}")

x, y = batch()
shift = nn.Parameter(torch.zeros_like(x))  # an attack on the inputs
attack = torch.optim.Adam([shift], 1e-2)
for step in range(15):
    attack.zero_grad()
    larger = -F.cross_entropy(net(x + shift), y)
    larger.backward()
    attack.step()
    shift.data.clamp_(-0.3, 0.3)
print(f"attacked {larger.item():.3f}")

generator, critic = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 6)), nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
of_generator, of_critic = torch.optim.Adam(generator.parameters(), 1e-3), torch.optim.Adam(critic.parameters(), 1e-3)
for step in range(30):  # the minimax form of the generator's loss
    real, fake = batch()[0], generator(torch.randn(48, 2))
    of_critic.zero_grad()
    judged = torch.cat([critic(real), critic(fake.detach())])
    F.binary_cross_entropy_with_logits(judged, torch.cat([torch.ones(48, 1), torch.zeros(48, 1)])).backward()
    of_critic.step()
    of_generator.zero_grad()
    (-F.binary_cross_entropy_with_logits(critic(fake), torch.zeros(48, 1))).backward()
    of_generator.step()
print("generated", [round(value, 2) for value in fake.mean(0).tolist()])
