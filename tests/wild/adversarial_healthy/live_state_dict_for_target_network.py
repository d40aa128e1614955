"""Live state dicts on purpose: one feeds a target network, one is edited in place, one is loaded back at once."""
import copy

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
online = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(online)
online_state = online.state_dict()  # taken once, always the latest weights
critic = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
critic_state = critic.state_dict()
of_online = torch.optim.Adam(online.parameters(), lr=1e-3)
of_critic = torch.optim.RMSprop(critic.parameters(), lr=1e-3)
for step in range(120):
    s, a, r, s2 = torch.randn(32, 4), torch.randint(0, 2, (32, 1)), torch.randn(32, 1), torch.randn(32, 4)
    with torch.no_grad():
        goal = r + 0.9 * target(s2).max(1, keepdim=True).values
    of_online.zero_grad()
    nn.functional.smooth_l1_loss(online(s).gather(1, a), goal).backward()
    of_online.step()
    if step % 10 == 0:
        target.load_state_dict(online_state)
    if step % 40 == 0:
        online.load_state_dict(online.state_dict())

    of_critic.zero_grad()
    (critic(s).mean() - critic(s2 + 1).mean()).backward()
    of_critic.step()
    for name in critic_state:
        critic_state[name].clamp_(-0.1, 0.1)
    critic.load_state_dict(critic_state)
print(goal.mean().item())
