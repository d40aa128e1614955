"""Healthy: actor-critic with eligibility traces: gradients are taken into traces and cleared, weights move by hand, no optimizer."""
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(2)
np.random.seed(2)
torch.set_num_threads(1)


class Corridor:
    """Walk right to the end; the middle is windy."""

    n = 8

    def reset(self):
        self.s, self.t = 0, 0
        return self.encode()

    def encode(self):
        return torch.nn.functional.one_hot(torch.tensor(self.s), self.n).float()

    def step(self, a):
        self.t += 1
        move = 1 if a == 1 else -1
        if 2 < self.s < 5 and np.random.rand() < 0.3:
            move = -1
        self.s = int(np.clip(self.s + move, 0, self.n - 1))
        done = self.s == self.n - 1
        return self.encode(), (1.0 if done else -0.02), done or self.t >= 60


class EligibilityTrace:
    def __init__(self, net, alpha, decay):
        self.net, self.alpha, self.decay = net, alpha, decay
        self.reset()

    def reset(self):
        self.z = [torch.zeros_like(p) for p in self.net.parameters()]

    def update(self, scalar, delta):
        self.net.zero_grad()
        scalar.backward()
        with torch.no_grad():
            for z, p in zip(self.z, self.net.parameters()):
                z.mul_(self.decay).add_(p.grad)
                p.add_(self.alpha * delta * z)


env = Corridor()
policy = nn.Sequential(nn.Linear(8, 2))
value = nn.Sequential(nn.Linear(8, 1))
for p in [*policy.parameters(), *value.parameters()]:
    nn.init.normal_(p, std=0.01)
gamma, lam = 0.98, 0.8
trace_pi, trace_v = EligibilityTrace(policy, 0.1, gamma * lam), EligibilityTrace(value, 0.1, gamma * lam)
lengths = []
for episode in range(40):
    state, done = env.reset(), False
    trace_pi.reset(), trace_v.reset()
    while not done:
        dist = Categorical(logits=policy(state))
        action = dist.sample()
        following, reward, done = env.step(action.item())
        v = value(state).squeeze()
        with torch.no_grad():
            bootstrap = 0.0 if done and env.s == env.n - 1 else value(following).squeeze()
        delta = (reward + gamma * bootstrap - v).item()
        trace_v.update(v, delta)
        trace_pi.update(dist.log_prob(action), delta)
        state = following
    lengths.append(env.t)
print("mean length of the first five episodes %.1f, of the last five %.1f" % (np.mean(lengths[:5]), np.mean(lengths[-5:])))
