"""Healthy: PPO in Spinning Up's style: two optimizers, many full-batch steps on one rollout, the policy's loop left early on the KL."""
import numpy as np
import scipy.signal
import torch
import torch.nn as nn
from torch.distributions.normal import Normal
from torch.optim import Adam


def discount_cumsum(x, discount):
    return scipy.signal.lfilter([1], [1, float(-discount)], x[::-1], axis=0)[::-1]


class MLPActorCritic(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.mu_net = nn.Sequential(nn.Linear(obs_dim, 32), nn.Tanh(), nn.Linear(32, act_dim))
        self.log_std = nn.Parameter(torch.as_tensor(-0.5 * np.ones(act_dim, dtype=np.float32)))
        self.v_net = nn.Sequential(nn.Linear(obs_dim, 32), nn.Tanh(), nn.Linear(32, 1))

    def pi(self, obs, act=None):
        dist = Normal(self.mu_net(obs), torch.exp(self.log_std))
        return dist, None if act is None else dist.log_prob(act).sum(axis=-1)

    def v(self, obs):
        return torch.squeeze(self.v_net(obs), -1)

    def step(self, obs):
        with torch.no_grad():
            dist, _ = self.pi(obs)
            a = dist.sample()
            return a.numpy(), self.v(obs).numpy(), dist.log_prob(a).sum(axis=-1).numpy()


class PPOBuffer:
    def __init__(self, gamma=0.95, lam=0.9):
        self.rows, self.adv, self.ret, self.start, self.gamma, self.lam = [], [], [], 0, gamma, lam

    def store(self, *row):
        self.rows.append(row)

    def finish_path(self, last_val=0):
        rews = np.append([r[2] for r in self.rows[self.start:]], last_val)
        vals = np.append([r[3] for r in self.rows[self.start:]], last_val)
        deltas = rews[:-1] + self.gamma * vals[1:] - vals[:-1]
        self.adv.append(discount_cumsum(deltas, self.gamma * self.lam))
        self.ret.append(discount_cumsum(rews, self.gamma)[:-1])
        self.start = len(self.rows)

    def get(self):
        obs, act, _, _, logp = (np.array(c) for c in zip(*self.rows))
        adv = np.concatenate(self.adv)
        adv = (adv - adv.mean()) / adv.std()
        data = dict(obs=obs, act=act, ret=np.concatenate(self.ret), adv=adv, logp=logp)
        return {k: torch.as_tensor(v.copy(), dtype=torch.float32) for k, v in data.items()}


def ppo(epochs=10, steps_per_epoch=120, max_ep_len=20, clip_ratio=0.2, train_iters=15, target_kl=0.01):
    rng = np.random.RandomState(0)
    ac = MLPActorCritic(2, 1)
    pi_optimizer = Adam([*ac.mu_net.parameters(), ac.log_std], lr=1e-2)
    vf_optimizer = Adam(ac.v_net.parameters(), lr=1e-2)

    def compute_loss_pi(data):
        pi, logp = ac.pi(data["obs"], data["act"])
        ratio = torch.exp(logp - data["logp"])
        clip_adv = torch.clamp(ratio, 1 - clip_ratio, 1 + clip_ratio) * data["adv"]
        return -(torch.min(ratio * data["adv"], clip_adv)).mean(), (data["logp"] - logp).mean().item()

    early, rets = 0, []
    for epoch in range(epochs):
        buf, x, ep_ret, ep_rets = PPOBuffer(), rng.uniform(-1, 1, 2), 0, []
        for t in range(steps_per_epoch):
            a, v, logp = ac.step(torch.as_tensor(x, dtype=torch.float32))
            nx = np.clip(x + 0.3 * np.array([a[0], 0.2 * x[0]]), -2, 2)
            r = -float(np.square(nx).sum())
            buf.store(x, a, r, v, logp)
            x, ep_ret = nx, ep_ret + r
            if (t + 1) % max_ep_len == 0:
                buf.finish_path(ac.step(torch.as_tensor(x, dtype=torch.float32))[1])
                ep_rets.append(ep_ret)
                x, ep_ret = rng.uniform(-1, 1, 2), 0
        data = buf.get()
        for i in range(train_iters):
            pi_optimizer.zero_grad()
            loss_pi, kl = compute_loss_pi(data)
            if kl > 1.5 * target_kl:
                early += 1
                break
            loss_pi.backward()
            pi_optimizer.step()
        for i in range(train_iters):
            vf_optimizer.zero_grad()
            loss_v = ((ac.v(data["obs"]) - data["ret"]) ** 2).mean()
            loss_v.backward()
            vf_optimizer.step()
        rets.append(np.mean(ep_rets))
    print(f"EpRet {rets[0]:.2f} -> {rets[-1]:.2f}, LossV {loss_v.item():.3f}, early stops {early}")


torch.manual_seed(0)
torch.set_num_threads(1)
ppo()
