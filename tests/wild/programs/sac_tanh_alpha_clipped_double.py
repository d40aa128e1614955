"""SAC in one class: automatic temperature by log_alpha as a Parameter, clipped double Q, target critic averaged under no_grad."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class GaussianPolicy(nn.Module):
    def __init__(self, s, a, h=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(s, h), nn.ReLU(), nn.Linear(h, 2 * a))

    def forward(self, s):
        mean, log_std = self.net(s).chunk(2, dim=-1)
        return mean, log_std.clamp(-4, 1)

    def sample(self, s):
        mean, log_std = self(s)
        noise = torch.randn_like(mean)
        u = mean + log_std.exp() * noise
        a = torch.tanh(u)
        log_prob = (-0.5 * noise ** 2 - log_std - 0.919).sum(-1) - torch.log(1 - a ** 2 + 1e-6).sum(-1)
        return a, log_prob, torch.tanh(mean)


class TwinQ(nn.Module):
    def __init__(self, s, a, h=32):
        super().__init__()
        self.q1 = nn.Sequential(nn.Linear(s + a, h), nn.ReLU(), nn.Linear(h, 1))
        self.q2 = nn.Sequential(nn.Linear(s + a, h), nn.ReLU(), nn.Linear(h, 1))

    def forward(self, s, a):
        sa = torch.cat([s, a], -1)
        return self.q1(sa).squeeze(-1), self.q2(sa).squeeze(-1)


class SAC(nn.Module):
    def __init__(self, s=3, a=1):
        super().__init__()
        self.policy, self.critic, self.critic_target = GaussianPolicy(s, a), TwinQ(s, a), TwinQ(s, a)
        self.critic_target.load_state_dict(self.critic.state_dict())
        self.log_alpha = nn.Parameter(torch.tensor(-1.0))
        self.target_entropy = -float(a)
        self.opt = {
            "policy": torch.optim.Adam(self.policy.parameters(), 1e-3),
            "critic": torch.optim.Adam(self.critic.parameters(), 2e-3),
            "alpha": torch.optim.Adam([self.log_alpha], 5e-3),
        }

    def _descend(self, name, loss):
        self.opt[name].zero_grad()
        loss.backward()
        self.opt[name].step()

    def learn(self, s, a, r, s2):
        with torch.no_grad():
            a2, logp2, _ = self.policy.sample(s2)
            q_next = torch.min(*self.critic_target(s2, a2)) - self.log_alpha.exp() * logp2
            goal = r + 0.8 * q_next
        q1, q2 = self.critic(s, a)
        self._descend("critic", F.mse_loss(q1, goal) + F.mse_loss(q2, goal))

        new_a, logp, _ = self.policy.sample(s)
        self._descend("policy", (self.log_alpha.exp().detach() * logp - torch.min(*self.critic(s, new_a))).mean())
        self._descend("alpha", -(self.log_alpha.exp() * (logp.detach() + self.target_entropy)).mean())

        with torch.no_grad():
            for t, p in zip(self.critic_target.parameters(), self.critic.parameters()):
                t.mul_(0.98).add_(p, alpha=0.02)


def simulate(s, a):
    s2 = 0.8 * s + 0.2 * torch.randn_like(s)
    s2[..., 0] += 0.6 * a[..., 0]
    return s2, -(s2[..., 0] - s2[..., 1]).abs()


torch.manual_seed(13)
agent, state, memory, history = SAC(), torch.randn(3), [], []
for t in range(350):
    with torch.no_grad():
        action = torch.rand(1) * 2 - 1 if t < 50 else agent.policy.sample(state)[0]
    following, reward = simulate(state, action)
    memory.append((state, action, reward, following))
    history.append(reward.item())
    state = following
    if t >= 50:
        picked = torch.randint(len(memory), (32,)).tolist()
        agent.learn(*(torch.stack(column) for column in zip(*(memory[i] for i in picked))))
with torch.no_grad():
    states = torch.randn(256, 3)
    score = simulate(states, agent.policy.sample(states)[2])[1].mean()
print(f"reward {sum(history[:80]) / 80:.3f} -> {sum(history[-80:]) / 80:.3f}, greedy {score:.3f}, alpha {agent.log_alpha.exp().item():.3f}")
