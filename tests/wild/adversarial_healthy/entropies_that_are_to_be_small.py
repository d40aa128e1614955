"""Entropies in losses with weighted log-probabilities: of gates, towards a limit, and of samples with few labels."""

import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional as F

torch.manual_seed(0)


def entropies(logs):
    return -(logs.exp() * logs).sum(-1)


def gates_that_decide(steps=60):
    """Choose one of four experts for each sample; each choice is clear, and all experts are in use."""
    gate, experts = nn.Linear(8, 4), nn.ModuleList(nn.Linear(8, 1) for _ in range(4))
    optimizer = torch.optim.Adam([*gate.parameters(), *experts.parameters()], lr=1e-2)
    for _ in range(steps):
        x = torch.randn(64, 8)
        policy = Categorical(logits=gate(x))
        chosen = policy.sample()
        out = torch.cat([expert(x) for expert in experts], 1).gather(1, chosen[:, None]).squeeze(1)
        error = F.mse_loss(out, x[:, 0].abs(), reduction="none")
        gain = -(error - error.mean()).detach()
        use = policy.probs.mean(0)
        loss = error.mean() - (policy.log_prob(chosen) * gain).mean()
        loss = loss + 0.01 * policy.entropy().mean() + 0.1 * (use * use.log()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def policy_below_a_limit(steps=60):
    """Reinforce arms of a bandit, with a price on each nat of entropy above a limit."""
    net = nn.Linear(5, 6)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    price = 0.05
    for _ in range(steps):
        x = torch.randn(64, 5)
        policy = Categorical(logits=net(x))
        arms = policy.sample()
        rewards = x.sum(1) * (arms - 2.5) + torch.randn(64)
        excess = policy.entropy().mean() - 1.0
        loss = -(policy.log_prob(arms) * (rewards - rewards.mean())).mean() + price * excess
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        price = max(0.01, price + 0.01 * excess.item())
    return excess.item()


def few_labels(steps=60):
    """Learn from a third of the labels, with weights of classes, and be certain about the other samples."""
    net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    weights = torch.tensor([0.5, 1.0, 1.5])
    x = torch.randn(384, 6)
    y = (x[:, :3] + 0.3 * torch.randn(384, 3)).argmax(1)
    known = (torch.rand(384) < 0.3).float()
    for step in range(steps):
        part = torch.arange(64) + 64 * (step % 6)
        logs = net(x[part]).log_softmax(1)
        picked = logs.gather(1, y[part, None]).squeeze(1)
        supervised = -(picked * weights[y[part]] * known[part]).sum() / known[part].sum()
        loss = supervised + 0.1 * (entropies(logs) * (1 - known[part])).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


print(gates_that_decide(), policy_below_a_limit(), few_labels())
