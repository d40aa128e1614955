"""The actor's optimizer is stepped in every round; its loss counts from round 40 on, when the critic has learnt something."""
import torch
from torch import nn

torch.manual_seed(0)
actor, critic = nn.Linear(3, 1), nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-2)
for update in range(60):
    state = torch.randn(32, 3)
    action = actor(state)
    noisy = (action + 0.3 * torch.randn_like(action)).detach()
    reward = -(noisy - state.sum(1, keepdim=True)).pow(2)
    actor_optimizer.zero_grad()
    critic_optimizer.zero_grad()
    loss = nn.functional.mse_loss(critic(torch.cat([state, noisy], 1)), reward)
    loss.backward()
    critic_optimizer.step()
    if update >= 40:
        critic.requires_grad_(False)
        (-critic(torch.cat([state, action], 1)).mean()).backward()
        critic.requires_grad_(True)
    actor_optimizer.step()
print(loss.item() < 100)
