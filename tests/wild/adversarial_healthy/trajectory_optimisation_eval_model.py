"""Plan actions through a learned dynamics model in eval mode: sixty calls, then one backward."""
import torch
from torch import nn

torch.manual_seed(0)


class Dynamics(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Dropout(0.1), nn.Linear(32, 2))

    def forward(self, state, action):
        return state + 0.1 * self.net(torch.cat([state, action], -1))


dynamics = Dynamics()
opt = torch.optim.Adam(dynamics.parameters(), lr=1e-2)
for step in range(60):
    s, a = torch.randn(64, 2), torch.randn(64, 1)
    target = s + 0.1 * torch.stack([s[:, 1], a[:, 0] - s[:, 0]], 1)
    loss = nn.functional.mse_loss(dynamics(s, a), target)
    opt.zero_grad()
    loss.backward()
    opt.step()

dynamics.eval()
actions = torch.zeros(60, 1, requires_grad=True)
planner = torch.optim.Adam([actions], lr=0.1)
for iteration in range(12):
    planner.zero_grad()
    state, cost = torch.tensor([1.0, 0.0]), 0.0
    for t in range(60):
        state = dynamics(state, actions[t])
        cost = cost + state.pow(2).sum() + 0.01 * actions[t].pow(2).sum()
    cost.backward()
    planner.step()
    print(iteration, float(cost))
