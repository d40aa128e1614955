"""The critic's loss is computed and its optimizer stepped, but backward is never called on it."""
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
actor, critic = nn.Linear(3, 1), nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
for update in range(40):
    state = torch.randn(32, 3)
    dist = Normal(actor(state), 1.0)
    action = dist.sample()
    reward = -(action - state.sum(1, keepdim=True)) ** 2
    value = critic(state)
    advantage = reward - value.detach()
    actor_loss = -(dist.log_prob(action) * advantage).mean()
    critic_loss = nn.functional.mse_loss(value, reward)  # error: loss-never-differentiated
    actor_optimizer.zero_grad()
    critic_optimizer.zero_grad()
    actor_loss.backward()
    actor_optimizer.step()
    critic_optimizer.step()
print(critic_loss.item())
