"""An agent with a dictionary of optimizers, as in reinforcement learning."""

import copy

import torch
import torch.nn.functional as F
from torch import nn


class Agent:
    def __init__(self, states: int, actions: int, tau: float = 0.005) -> None:
        self.nets = nn.ModuleDict(
            {
                "actor": nn.Sequential(nn.Linear(states, 64), nn.ReLU(), nn.Linear(64, actions), nn.Tanh()),
                "critic": nn.Sequential(nn.Linear(states + actions, 64), nn.ReLU(), nn.Linear(64, 1)),
            }
        )
        self.targets = copy.deepcopy(self.nets).requires_grad_(False)
        self.optimizers = {name: torch.optim.Adam(net.parameters(), lr=1e-3) for name, net in self.nets.items()}
        self.tau = tau

    def update(self, batch):
        s, a, r, s2, done = batch
        with torch.no_grad():
            a2 = self.targets["actor"](s2)
            q2 = self.targets["critic"](torch.cat([s2, a2], 1))
            goal = r + 0.99 * (1 - done) * q2
        critic_loss = F.mse_loss(self.nets["critic"](torch.cat([s, a], 1)), goal)
        self._apply("critic", critic_loss)
        actor_loss = -self.nets["critic"](torch.cat([s, self.nets["actor"](s)], 1)).mean()
        self._apply("actor", actor_loss)
        with torch.no_grad():
            for target, param in zip(self.targets.parameters(), self.nets.parameters(), strict=True):
                target.lerp_(param, self.tau)
        return {"critic": critic_loss.item(), "actor": actor_loss.item()}

    def _apply(self, name: str, loss: torch.Tensor) -> None:
        self.optimizers[name].zero_grad()  # broken[missing-zero-grad]: pass
        loss.backward()
        self.optimizers[name].step()
