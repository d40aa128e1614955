"""A clipped policy gradient in minibatches: the old probabilities are those of the current weights."""

import torch
from torch import nn
from torch.distributions import Categorical


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 3))
        self.critic = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, states):
        return Categorical(logits=self.actor(states)), self.critic(states).squeeze(-1)


class Points:
    """Points that drift, and are to be kept near zero."""

    def __init__(self, count):
        self.place, self.speed, self.wind = torch.randn(count), torch.zeros(count), 0.1 * torch.randn(count)

    def state(self):
        return torch.stack([self.place, self.speed, self.wind], 1)

    def step(self, actions):
        self.speed = 0.8 * self.speed + 0.2 * (actions - 1) + 0.1 * self.wind
        self.place = self.place + self.speed
        return -self.place.abs()


def collect(agent, points, steps=16):
    states, actions, rewards = [], [], []
    with torch.no_grad():
        for _ in range(steps):
            states.append(points.state())
            actions.append(agent(states[-1])[0].sample())
            rewards.append(points.step(actions[-1]))
        total, returns = agent(points.state())[1], []
        for reward in reversed(rewards):
            total = reward + 0.9 * total
            returns.insert(0, total)
        gains = torch.cat(returns) - agent(torch.cat(states))[1]
    return torch.cat(states), torch.cat(actions), torch.cat(returns), (gains - gains.mean()) / gains.std()


torch.manual_seed(0)
agent, points = Agent(), Points(16)
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)
for iteration in range(10):
    states, actions, returns, gains = collect(agent, points)
    for _ in range(5):
        for part in torch.randperm(len(states)).split(64):
            policy, value = agent(states[part])
            after = policy.log_prob(actions[part])
            with torch.no_grad():
                before = agent(states[part])[0].log_prob(actions[part])
            ratio = (after - before).exp()  # error: reference-is-the-model
            objective = torch.min(ratio * gains[part], ratio.clamp(0.8, 1.2) * gains[part]).mean()
            error = (value - returns[part]).square().mean()
            loss = 0.5 * error - objective - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(iteration, round(points.place.abs().mean().item(), 2), round(ratio.mean().item(), 3))
