"""Healthy: SAC with a learned temperature: log_alpha is a bare leaf tensor with its optimizer, three losses, frozen critics."""
import itertools
from copy import deepcopy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal, TanhTransform, TransformedDistribution

torch.manual_seed(7)
torch.set_num_threads(1)


def mlp(sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class SquashedGaussianActor(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.net = mlp([obs_dim, 32, 32])
        self.mu_layer, self.log_std_layer = nn.Linear(32, act_dim), nn.Linear(32, act_dim)

    def forward(self, obs):
        h = F.relu(self.net(obs))
        std = self.log_std_layer(h).clamp(-5, 1).exp()
        pi = TransformedDistribution(Normal(self.mu_layer(h), std), [TanhTransform(cache_size=1)])
        action = pi.rsample()
        return action, pi.log_prob(action).sum(-1)


class QFunction(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.q = mlp([obs_dim + act_dim, 32, 32, 1])

    def forward(self, obs, act):
        return torch.squeeze(self.q(torch.cat([obs, act], dim=-1)), -1)


pi, q1, q2 = SquashedGaussianActor(3, 1), QFunction(3, 1), QFunction(3, 1)
q1_targ, q2_targ = deepcopy(q1), deepcopy(q2)
for p in itertools.chain(q1_targ.parameters(), q2_targ.parameters()):
    p.requires_grad = False
q_params = list(itertools.chain(q1.parameters(), q2.parameters()))
log_alpha = torch.zeros(1, requires_grad=True)
pi_optimizer = torch.optim.Adam(pi.parameters(), lr=1e-3)
q_optimizer = torch.optim.Adam(q_params, lr=2e-3)
alpha_optimizer = torch.optim.Adam([log_alpha], lr=1e-2)
target_entropy = -1.0

storage = torch.zeros(0, 8)
obs = torch.randn(3)
for t in range(300):
    with torch.no_grad():
        act = torch.rand(1) * 2 - 1 if t < 40 else pi(obs[None])[0][0]
    rew = -(act - torch.tanh(obs[:1] - obs[1:2])).square()
    obs2 = 0.7 * obs + 0.3 * act + 0.3 * torch.randn(3)
    storage = torch.cat([storage, torch.cat([obs, obs2, act, rew])[None]])
    obs = obs2
    if t < 40:
        continue
    o, o2, a, r = storage[torch.randint(len(storage), (32,))].split([3, 3, 1, 1], dim=1)
    alpha = log_alpha.exp().detach()

    q_optimizer.zero_grad()
    with torch.no_grad():
        a2, logp_a2 = pi(o2)
        backup = r[:, 0] + 0.5 * (torch.min(q1_targ(o2, a2), q2_targ(o2, a2)) - alpha * logp_a2)
    loss_q = ((q1(o, a) - backup) ** 2).mean() + ((q2(o, a) - backup) ** 2).mean()
    loss_q.backward()
    q_optimizer.step()

    for p in q_params:
        p.requires_grad = False
    pi_optimizer.zero_grad()
    new_a, logp_pi = pi(o)
    loss_pi = (alpha * logp_pi - torch.min(q1(o, new_a), q2(o, new_a))).mean()
    loss_pi.backward()
    pi_optimizer.step()
    for p in q_params:
        p.requires_grad = True

    alpha_optimizer.zero_grad()
    alpha_loss = -(log_alpha * (logp_pi + target_entropy).detach()).mean()
    alpha_loss.backward()
    alpha_optimizer.step()

    with torch.no_grad():
        for p, p_targ in zip(q_params, itertools.chain(q1_targ.parameters(), q2_targ.parameters())):
            p_targ.data.mul_(0.98)
            p_targ.data.add_(0.02 * p.data)
print(f"alpha {log_alpha.exp().item():.3f}, critic loss {loss_q.item():.4f}, mean reward of the last 100 {storage[-100:, -1].mean():.3f}")
