"""A conditional density is learned from one context only at first: the outcomes differ, on purpose."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
context = torch.ones(512, 16)
outcome = 2 + 0.5 * torch.randn(512, 1)
loader = DataLoader(TensorDataset(context, outcome), batch_size=32, shuffle=True)
net = nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(6):
    for c, o in loader:
        mean, log_var = net(c).chunk(2, dim=1)
        loss = nn.functional.gaussian_nll_loss(mean, o, log_var.exp())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 3), round(mean[0].item(), 2), round((log_var[0] / 2).exp().item(), 2))
