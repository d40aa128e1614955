"""PPO with a clipped surrogate on a batch of small steering tasks."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

torch.manual_seed(3)

N_ENVS, HORIZON, ITERATIONS = 32, 20, 25
GAMMA, LAMBDA, CLIP, EPOCHS, LR = 0.95, 0.9, 0.2, 12, 6e-3


class SteeringTask:
    """Keep a drifting point near a target; actions push left, wait or push right."""

    def __init__(self, n, generator):
        self.n, self.generator = n, generator

    def reset(self):
        self.position = 2 * torch.rand(self.n, generator=self.generator) - 1
        self.velocity = torch.zeros(self.n)
        self.target = 1.6 * torch.rand(self.n, generator=self.generator) - 0.8
        return self.observe()

    def observe(self):
        return torch.stack([self.position, self.velocity, self.target - self.position], dim=1)

    def step(self, action):
        noise = 0.02 * torch.randn(self.n, generator=self.generator)
        self.velocity = 0.8 * self.velocity + 0.08 * (action.float() - 1) + noise
        self.position = (self.position + self.velocity).clamp(-1.5, 1.5)
        return self.observe(), -(self.position - self.target).abs()


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 3))
        self.critic = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))

    def policy(self, obs):
        return Categorical(logits=self.actor(obs))

    def value(self, obs):
        return self.critic(obs).squeeze(-1)


@torch.no_grad()
def collect(model, env):
    obs_list, act_list, logp_list, rew_list, val_list = [], [], [], [], []
    obs = env.reset()
    for _ in range(HORIZON):
        dist = model.policy(obs)
        action = dist.sample()
        obs_list.append(obs)
        act_list.append(action)
        logp_list.append(dist.log_prob(action))
        val_list.append(model.value(obs))
        obs, reward = env.step(action)
        rew_list.append(reward)
    values = torch.stack(val_list + [model.value(obs)])
    advantage, gae = [], torch.zeros(N_ENVS)
    for t in reversed(range(HORIZON)):
        delta = rew_list[t] + GAMMA * values[t + 1] - values[t]
        gae = delta + GAMMA * LAMBDA * gae
        advantage.insert(0, gae)
    advantage = torch.stack(advantage)
    returns = advantage + values[:-1]
    return (torch.stack(obs_list).flatten(0, 1), torch.stack(act_list).flatten(),
            torch.stack(logp_list).flatten(), advantage.flatten(), returns.flatten())


def update(model, optimizer, batch):
    obs, actions, old_logp, advantage, returns = batch
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    clipped = 0.0
    for _ in range(EPOCHS):
        for idx in torch.randperm(len(obs)).split(160):
            dist = model.policy(obs[idx])
            ratio = (dist.log_prob(actions[idx]) - old_logp[idx]).exp()
            surrogate = torch.min(ratio * advantage[idx],
                                  ratio.clamp(1 - CLIP, 1 + CLIP) * advantage[idx])
            value_loss = F.mse_loss(model.value(obs[idx]), returns[idx])
            loss = -surrogate.mean() + 0.5 * value_loss - 0.005 * dist.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            clipped += ((ratio - 1).abs() > CLIP).float().mean().item()
    return loss.item(), clipped / (EPOCHS * 4)


@torch.no_grad()
def evaluate(model):
    env = SteeringTask(200, torch.Generator().manual_seed(77))
    obs, total = env.reset(), torch.zeros(200)
    for _ in range(HORIZON):
        obs, reward = env.step(model.policy(obs).probs.argmax(dim=1))
        total += reward
    return total.mean().item()


env = SteeringTask(N_ENVS, torch.Generator().manual_seed(3))
model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), lr=LR)
for iteration in range(1, ITERATIONS + 1):
    loss, clip_share = update(model, optimizer, collect(model, env))
    if iteration % 5 == 0:
        print(f"iteration {iteration:3d}  loss {loss:.4f}  clipped {clip_share:.3f}  "
              f"greedy return {evaluate(model):.3f}")
