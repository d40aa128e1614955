"""Gumbel-softmax with straight-through hard choices, annealed."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(6, 3)
        self.experts = nn.ModuleList(nn.Linear(6, 4) for _ in range(3))

    def forward(self, x, tau):
        choice = F.gumbel_softmax(self.gate(x), tau=tau, hard=True)
        return torch.einsum("be,beo->bo", choice, torch.stack([e(x) for e in self.experts], 1))


model = Router()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(40):
    x = torch.randn(32, 6)
    y = x[:, :4].argmax(1)
    loss = F.cross_entropy(model(x, tau=max(0.5, 1 - step / 50)), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
