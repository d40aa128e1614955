"""Advantage actor-critic on a small grid with a bog."""

import torch
from torch import nn
from torch.distributions import Categorical

ROWS, COLS, GAMMA = 3, 5, 0.95
MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]


class Grid:
    """Start bottom left, goal bottom right, bog between them (it costs, but does not end the game)."""

    def reset(self):
        self.r, self.c, self.t = ROWS - 1, 0, 0
        return self.observe()

    def observe(self):
        v = torch.zeros(ROWS * COLS)
        v[self.r * COLS + self.c] = 1
        return v

    def step(self, action):
        dr, dc = MOVES[action]
        self.r = min(max(self.r + dr, 0), ROWS - 1)
        self.c = min(max(self.c + dc, 0), COLS - 1)
        self.t += 1
        if self.r == ROWS - 1 and 0 < self.c < COLS - 1:
            return self.observe(), -0.2, self.t >= 20
        if self.r == ROWS - 1 and self.c == COLS - 1:
            return self.observe(), 1.0, True
        return self.observe(), -0.04, self.t >= 20


class ActorCritic(nn.Module):
    """Shared layer with a policy and a value head."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(ROWS * COLS, 32), nn.Tanh())
        self.pi = nn.Linear(32, 4)
        self.v = nn.Linear(32, 1)

    def forward(self, s):
        h = self.body(s)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


def play(env, net):
    states, actions, rewards = [], [], []
    s, done = env.reset(), False
    while not done:
        with torch.no_grad():
            dist, _ = net(s)
        a = dist.sample()
        states.append(s)
        actions.append(a)
        s, r, done = env.step(a.item())
        rewards.append(r)
    returns, g = [], 0.0
    for r in reversed(rewards):
        g = r + GAMMA * g
        returns.insert(0, g)
    return states, actions, returns, sum(rewards)


torch.manual_seed(16)
env, net = Grid(), ActorCritic()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
history = []
for update in range(1, 61):
    states, actions, returns = [], [], []
    for _ in range(5):
        s, a, g, total = play(env, net)
        states += s
        actions += a
        returns += g
        history.append(total)
    dist, value = net(torch.stack(states))
    returns = torch.tensor(returns)
    advantage = returns - value.detach()
    actor_loss = -(dist.log_prob(torch.stack(actions)) * advantage).mean()
    critic_loss = nn.functional.mse_loss(value, returns)
    loss = actor_loss + 0.5 * critic_loss - 0.02 * dist.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 12 == 0:
        mean = sum(history[-60:]) / 60
        print(f"update {update} actor {actor_loss.item():.4f} critic {critic_loss.item():.4f} mean reward {mean:.3f}")
