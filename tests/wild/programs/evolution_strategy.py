"""Healthy: evolution strategy: gradients estimated from antithetic perturbations and set by hand, no backward anywhere."""
import torch
import torch.nn as nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class PointMass:
    """Drive a point to the origin; the return is minus the accumulated distance."""

    def __init__(self, n):
        self.start = 2 * torch.rand(n, 2) - 1

    def rollout(self, policy, steps=12):
        pos, vel, ret = self.start.clone(), torch.zeros_like(self.start), 0.0
        for _ in range(steps):
            acc = torch.tanh(policy(torch.cat([pos, vel], 1)))
            vel = 0.8 * vel + 0.3 * acc
            pos = pos + 0.3 * vel
            ret -= pos.norm(dim=1).mean().item()
        return ret / steps


@torch.no_grad()
def train(iterations=45, population=8, sigma=0.1, lr=0.05):
    policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=lr)
    test_env = PointMass(256)
    print("return before", round(test_env.rollout(policy), 4))
    for it in range(iterations):
        env = PointMass(32)
        theta = parameters_to_vector(policy.parameters())
        grad = torch.zeros_like(theta)
        for _ in range(population):
            eps = torch.randn_like(theta)
            rewards = []
            for sign in (1, -1):
                vector_to_parameters(theta + sign * sigma * eps, policy.parameters())
                rewards.append(env.rollout(policy))
            grad -= (rewards[0] - rewards[1]) / (2 * sigma * population) * eps
        vector_to_parameters(theta, policy.parameters())

        offset = 0
        for p in policy.parameters():
            p.grad = grad[offset:offset + p.numel()].view_as(p).clone()
            offset += p.numel()
        optimizer.step()
    print("return after", round(test_env.rollout(policy), 4))


torch.manual_seed(0)
torch.set_num_threads(1)
train()
