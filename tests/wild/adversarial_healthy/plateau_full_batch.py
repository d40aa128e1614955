"""Whole-batch training of a PINN-like fit: the loss of the step is the metric."""
import torch
from torch import nn

torch.manual_seed(0)
t = torch.linspace(0, 1, 50).unsqueeze(1)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=20)
for it in range(120):
    opt.zero_grad()
    loss = nn.functional.mse_loss(net(t), torch.sin(3 * t))
    loss.backward()
    opt.step()
    sched.step(loss.item())
print(loss.item())
