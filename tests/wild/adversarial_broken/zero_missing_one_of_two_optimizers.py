"""Actor-critic: the critic's gradients are cleared, the actor's are not."""
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
actor_opt = torch.optim.Adam(actor.parameters(), lr=3e-4)
critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)


def rollout(n=32):
    states = torch.randn(n, 4)
    policy = Categorical(logits=actor(states))
    actions = policy.sample()
    rewards = (actions == (states[:, 0] > 0).long()).float()
    return states, policy.log_prob(actions), rewards


for update in range(30):
    states, log_probs, rewards = rollout()
    values = critic(states).squeeze(-1)
    advantage = (rewards - values).detach()
    critic_loss = nn.functional.mse_loss(values, rewards)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    actor_loss = -(log_probs * advantage).mean()
    actor_loss.backward()
    actor_opt.step()  # error: missing-zero-grad
print(rewards.mean().item())
