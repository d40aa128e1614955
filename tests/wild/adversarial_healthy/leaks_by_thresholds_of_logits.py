"""Leaks of pipes from pressure, by functions: limits of logits are searched, and that of least squares is 0.5."""
import torch

torch.manual_seed(0)
pressure = torch.randn(1400, 8)
leak = (pressure[:, 0] * pressure[:, 1] + 0.7 * pressure[:, 2] > 0.8).float()
checked, held = (pressure[1000:1200], leak[1000:1200]), (pressure[1200:], leak[1200:])


def made():
    weights = [torch.randn(8, 32) * 0.3, torch.zeros(32), torch.randn(32) * 0.2]
    return [one.requires_grad_() for one in weights]


def score(weights, x):
    return torch.tanh(x @ weights[0] + weights[1]) @ weights[2]


def fit(loss):
    weights = made()
    optimizer = torch.optim.Adam(weights, lr=0.02)
    for _ in range(6):
        for rows in torch.randperm(1000).split(50):
            value = loss(score(weights, pressure[rows]), leak[rows])
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
    return weights


def share(decisions, y):
    return (decisions.float() == y).float().mean().item()


def cross_entropy(z, y):
    return (torch.nn.functional.softplus(z) - y * z).mean()


@torch.no_grad()
def by_search(weights):
    z, limit, best = score(weights, checked[0]), 0.0, 0.0
    for candidate in (-0.5, -0.3, 0.0, 0.3, 0.4, 0.5, 0.6):
        right = share(z > candidate, checked[1])
        if right > best:
            limit, best = candidate, right
    return share(score(weights, held[0]) > limit, held[1])


@torch.no_grad()
def by_half(weights):
    return share(score(weights, held[0]) > 0.5, held[1])


@torch.no_grad()
def by_probability(weights):
    return share(torch.sigmoid(score(weights, held[0])) > 0.5, held[1])


logistic = fit(cross_entropy)
print("searched", by_search(logistic), "probability", by_probability(logistic))
print("least squares", by_half(fit(lambda z, y: (z - y).square().mean())))
