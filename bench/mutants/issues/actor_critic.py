# Actor-critic on a small grid with slippery moves
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

torch.manual_seed(9)

SIZE, GOAL, PIT = 5, (4, 4), (2, 2)
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]
GAMMA, LR, UPDATES, N_ENVS, ROLLOUT = 0.95, 5e-3, 220, 16, 12


class SlipperyGrid:
    """A batch of 5x5 grids: +1 at the goal, -1 in the pit, -0.02 per step, 10 % random moves."""

    def __init__(self, n, seed):
        self.n, self.g = n, torch.Generator().manual_seed(seed)
        self.moves = torch.tensor(MOVES)
        self.pos = torch.zeros(n, 2, dtype=torch.long)

    def observe(self):
        return F.one_hot(self.pos[:, 0] * SIZE + self.pos[:, 1], SIZE * SIZE).float()

    def step(self, actions):
        slip = torch.rand(self.n, generator=self.g) < 0.1
        actions = torch.where(slip, torch.randint(0, 4, (self.n,), generator=self.g), actions)
        self.pos = (self.pos + self.moves[actions]).clamp(0, SIZE - 1)
        goal = (self.pos == torch.tensor(GOAL)).all(1)
        pit = (self.pos == torch.tensor(PIT)).all(1)
        reward = -0.02 + goal.float() - pit.float()
        done = goal | pit
        self.pos[done] = 0
        return self.observe(), reward, done.float(), goal


class ActorCritic(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(SIZE * SIZE, hidden), nn.Tanh(), nn.Linear(hidden, 4))
        self.critic = nn.Sequential(nn.Linear(SIZE * SIZE, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, obs):
        return self.actor(obs), self.critic(obs).squeeze(-1)


def update(model, optimizer, env, obs):
    log_probs, values, rewards, dones, entropies = [], [], [], [], []
    for _ in range(ROLLOUT):
        logits, value = model(obs)
        dist = Categorical(logits=logits)
        action = dist.sample()
        obs, reward, done, _ = env.step(action)
        log_probs.append(dist.log_prob(action))
        entropies.append(dist.entropy())
        values.append(value)
        rewards.append(reward)
        dones.append(done)

    with torch.no_grad():
        ret = model(obs)[1]
    returns = []
    for reward, done in zip(reversed(rewards), reversed(dones)):
        ret = reward + GAMMA * ret * (1 - done)
        returns.insert(0, ret)

    log_probs, values, returns = torch.stack(log_probs), torch.stack(values), torch.stack(returns)
    advantage = returns - values
    actor_loss = -(log_probs * advantage.detach()).mean()
    critic_loss = advantage.pow(2).mean()
    loss = actor_loss + 0.5 * critic_loss - 0.01 * torch.stack(entropies).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return obs, critic_loss.item(), torch.stack(rewards).mean().item()


@torch.no_grad()
def evaluate(model, steps=300, n=16):
    env = SlipperyGrid(n, seed=2024)
    obs, goals, ends, total = env.observe(), 0, 0, 0.0
    for _ in range(steps):
        obs, reward, done, goal = env.step(model(obs)[0].argmax(1))
        goals, ends, total = goals + goal.sum().item(), ends + done.sum().item(), total + reward.sum().item()
    return goals / max(ends, 1), total / (steps * n)


model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=LR)
env = SlipperyGrid(N_ENVS, seed=0)
obs = env.observe()
for i in range(1, UPDATES + 1):
    obs, critic_loss, mean_reward = update(model, optimizer, env, obs)
    if i % 44 == 0:
        print(f'update {i}: critic loss {critic_loss:.4f}, reward per step {mean_reward:.4f}')

share, reward = evaluate(model)
print(f'evaluation: {100 * share:.1f} % of the episodes reach the goal, reward per step {reward:.4f}')
