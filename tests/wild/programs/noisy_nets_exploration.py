"""NoisyNets: factorised noise drawn again in each call, in action selection as in learning; eval mode uses the means."""
import math
import random

import torch
from torch import nn
from torch.nn import functional as F


class NoisyLinear(nn.Module):
    def __init__(self, fan_in, fan_out, sigma0=0.5):
        super().__init__()
        bound = 1 / math.sqrt(fan_in)
        self.weight_mu = nn.Parameter(torch.empty(fan_out, fan_in).uniform_(-bound, bound))
        self.weight_sigma = nn.Parameter(torch.full((fan_out, fan_in), sigma0 * bound))
        self.bias_mu = nn.Parameter(torch.empty(fan_out).uniform_(-bound, bound))
        self.bias_sigma = nn.Parameter(torch.full((fan_out,), sigma0 * bound))
        self.register_buffer("eps_in", torch.zeros(fan_in))
        self.register_buffer("eps_out", torch.zeros(fan_out))

    @torch.no_grad()
    def resample(self):
        for buffer in (self.eps_in, self.eps_out):
            noise = torch.randn(buffer.shape)
            buffer.copy_(noise.sign() * noise.abs().sqrt())

    def forward(self, x):
        if not self.training:
            return F.linear(x, self.weight_mu, self.bias_mu)
        weight = self.weight_mu + self.weight_sigma * torch.outer(self.eps_out, self.eps_in)
        return F.linear(x, weight, self.bias_mu + self.bias_sigma * self.eps_out)


class NoisyQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 32)
        self.noisy = NoisyLinear(32, 2)

    def forward(self, x):
        return self.noisy(torch.relu(self.fc(x)))

    def resample(self):
        self.noisy.resample()


def step_env(state, action):
    """Keep a drifting point near zero with kicks to the left or right."""
    x, v, wind, age = state
    v = 0.8 * v + (0.3 if action else -0.3) + 0.1 * wind
    x = x + 0.2 * v
    reward = 1.0 - abs(x)
    done = abs(x) > 2 or age >= 1
    return (x, v, wind, age + 0.02), reward, done


def reset():
    return (random.uniform(-0.5, 0.5), 0.0, random.choice([-1.0, 1.0]), 0.0)


torch.manual_seed(5)
random.seed(5)
online, target = NoisyQ(), NoisyQ()
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=2e-3)
memory, state = [], reset()
for t in range(500):
    online.resample()
    with torch.no_grad():
        action = online(torch.tensor([state])).argmax().item()
    following, reward, done = step_env(state, action)
    memory.append((state, action, reward, following, float(done)))
    state = reset() if done else following
    if len(memory) < 64:
        continue
    s, a, r, s2, d = (torch.tensor(column) for column in zip(*random.sample(memory, 32)))
    online.resample()
    target.resample()
    with torch.no_grad():
        y = r + 0.95 * target(s2).max(1).values * (1 - d)
    loss = F.mse_loss(online(s).gather(1, a.unsqueeze(1)).squeeze(1), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if t % 50 == 0:
        target.load_state_dict(online.state_dict())

online.eval()
with torch.no_grad():
    scores = []
    for _ in range(5):
        state, total, done = reset(), 0.0, False
        while not done:
            state, reward, done = step_env(state, online(torch.tensor([state])).argmax().item())
            total += reward
        scores.append(total)
print(f"loss {loss.item():.3f}, sigma {online.noisy.weight_sigma.abs().mean():.3f}, evaluation return {sum(scores) / 5:.2f}")
