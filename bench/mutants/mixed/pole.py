# Clipped actor-critic (PPO) with GAE on a hand-written pole-balancing task (single file).
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

seed = 1
num_envs, num_steps = 16, 64
updates = 40
epochs = 6
minibatch = 256
clip = 0.2
gamma = 0.99
lam = 0.95
ent_coef = 0.003
vf_coef = 0.5
learning_rate = 3e-3
max_grad_norm = 0.5
time_limit = 200


# ------------------------------------------------------------------ environment
class PoleEnvs:
    """n independent cart-poles in arrays; an episode that ends is reset at once."""

    def __init__(self, n, seed):
        self.n, self.rng = n, np.random.default_rng(seed)
        self.state = self._fresh(n)
        self.t = np.zeros(n, int)

    def _fresh(self, k):
        return self.rng.uniform(-0.05, 0.05, (k, 4))

    def step(self, action):
        x, v, th, w = self.state.T
        force = np.where(action == 1, 10.0, -10.0) + self.rng.normal(0, 1.0, self.n)
        temp = (force + 0.05 * w ** 2 * np.sin(th)) / 1.1
        acc = (9.8 * np.sin(th) - np.cos(th) * temp) / (0.5 * (4 / 3 - 0.1 * np.cos(th) ** 2 / 1.1))
        xacc = temp - 0.05 * acc * np.cos(th) / 1.1
        self.state = np.stack([x + 0.02 * v, v + 0.02 * xacc, th + 0.02 * w, w + 0.02 * acc], axis=1)
        self.t += 1
        fell = (abs(self.state[:, 0]) > 2.4) | (abs(self.state[:, 2]) > 0.21)
        late = (self.t >= time_limit) & ~fell
        reward = 1.0 - 0.5 * abs(self.state[:, 0])                 # stay in the middle
        last = self.state.copy()                                   # before the reset
        over = fell | late
        self.state[over] = self._fresh(over.sum())
        self.t[over] = 0
        return self.state.copy(), reward, fell, late, last


class RunningNorm:
    def __init__(self, dim):
        self.mean, self.var, self.count = np.zeros(dim), np.ones(dim), 1e-4

    def update(self, x):
        m, v, n = x.mean(0), x.var(0), len(x)
        total, delta = self.count + n, m - self.mean
        self.var = (self.var * self.count + v * n + delta ** 2 * self.count * n / total) / total
        self.mean, self.count = self.mean + delta * n / total, total

    def __call__(self, x):
        return torch.tensor(np.clip((x - self.mean) / np.sqrt(self.var + 1e-8), -5, 5), dtype=torch.float32)


# ------------------------------------------------------------------ networks
def layer(i, o, gain=np.sqrt(2)):
    lin = nn.Linear(i, o)
    nn.init.orthogonal_(lin.weight, gain)
    nn.init.zeros_(lin.bias)
    return lin


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(layer(4, 32), nn.Tanh(), layer(32, 32), nn.Tanh(), layer(32, 2, 0.01))
        self.critic = nn.Sequential(layer(4, 32), nn.Tanh(), layer(32, 32), nn.Tanh(), layer(32, 1, 1.0))

    def value(self, obs):
        return self.critic(obs).squeeze(-1)

    def policy(self, obs):
        return Categorical(logits=self.actor(obs))


def evaluate(agent, norm, episodes=30):
    """Mean return of one greedy episode in each of `episodes` environments."""
    envs = PoleEnvs(episodes, seed=999)
    alive, total = np.ones(episodes), np.zeros(episodes)
    obs = envs.state.copy()
    for _ in range(time_limit):
        with torch.no_grad():
            action = agent.policy(norm(obs)).probs.argmax(dim=-1).numpy()
        obs, reward, fell, late, _ = envs.step(action)
        total += reward * alive
        alive[fell | late] = 0.0
    return total.mean()


# ------------------------------------------------------------------ training
torch.manual_seed(seed)
envs = PoleEnvs(num_envs, seed)
norm = RunningNorm(4)
agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=learning_rate, eps=1e-5)
obs = envs.state.copy()
print(f"before training: {evaluate(agent, norm):.2f}")

for update in range(1, updates + 1):
    optimizer.param_groups[0]["lr"] = learning_rate * (1 - (update - 1) / updates)
    obs_buf = torch.zeros(num_steps, num_envs, 4)
    act_buf = torch.zeros(num_steps, num_envs, dtype=torch.long)
    rew_buf, fell_buf, over_buf, val_buf, next_buf, logp_buf = (torch.zeros(num_steps, num_envs) for _ in range(6))
    for t in range(num_steps):
        norm.update(obs)
        seen = norm(obs)
        with torch.no_grad():
            dist = agent.policy(seen)
            action = dist.sample()
            logp_buf[t] = dist.log_prob(action)
            val_buf[t] = agent.value(seen)
        next_obs, reward, fell, late, last = envs.step(action.numpy())
        with torch.no_grad():
            next_buf[t] = agent.value(norm(last))
        obs_buf[t], act_buf[t] = seen, action
        rew_buf[t] = torch.tensor(reward)
        fell_buf[t], over_buf[t] = torch.tensor(fell), torch.tensor(fell | late)
        obs = next_obs
    # a fall ends the return; at the time limit the value of the last state goes on
    adv = torch.zeros(num_steps, num_envs)
    running = torch.zeros(num_envs)
    for t in reversed(range(num_steps)):
        delta = rew_buf[t] + gamma * next_buf[t] * (1 - fell_buf[t]) - val_buf[t]
        running = delta + gamma * lam * (1 - over_buf[t]) * running
        adv[t] = running
    returns = adv + val_buf

    b_obs, b_act, b_logp = obs_buf.view(-1, 4), act_buf.view(-1), logp_buf.view(-1)
    b_adv, b_ret = adv.view(-1), returns.view(-1)
    for _ in range(epochs):
        for idx in torch.randperm(len(b_obs)).split(minibatch):
            mb_adv = b_adv[idx]
            mb_adv = (mb_adv - mb_adv.mean()) / (mb_adv.std() + 1e-8)
            dist = agent.policy(b_obs[idx])
            ratio = (dist.log_prob(b_act[idx]) - b_logp[idx]).exp()
            pg_loss = torch.max(-mb_adv * ratio, -mb_adv * ratio.clamp(1 - clip, 1 + clip)).mean()
            v_loss = 0.5 * (agent.value(b_obs[idx]) - b_ret[idx]).pow(2).mean()
            entropy = dist.entropy().mean()
            loss = pg_loss + vf_coef * v_loss - ent_coef * entropy

            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), max_grad_norm)
            optimizer.step()
    if update % 8 == 0:
        print(f"update {update} policy {pg_loss.item():.4f} value {v_loss.item():.4f} "
              f"entropy {entropy.item():.4f} return {evaluate(agent, norm):.2f}")

print(f"final greedy return {evaluate(agent, norm, episodes=60):.3f}")
