# says: `advantage` leads into the graph that `actor_loss.backward()` has freed
# says: `advantage.detach()`
import torch
from torch import nn

actor, critic = nn.Linear(4, 2), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
actor_opt = torch.optim.Adam(actor.parameters(), 1e-3)
critic_opt = torch.optim.Adam(critic.parameters(), 1e-3)


def update(state, reward):
    dist = torch.distributions.Categorical(logits=actor(state))
    action = dist.sample()
    value = critic(state).squeeze(1)
    advantage = reward - value  # related
    actor_loss = -(dist.log_prob(action) * advantage).mean()
    critic_loss = advantage.pow(2).mean()

    actor_opt.zero_grad()
    actor_loss.backward()  # related
    actor_opt.step()

    critic_opt.zero_grad()
    critic_loss.backward()  # died: graph-freed
    critic_opt.step()


for episode in range(3):
    update(torch.randn(16, 4), torch.randn(16))
