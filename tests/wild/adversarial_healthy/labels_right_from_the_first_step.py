"""A separable task in bfloat16: labels may be the largest scores from the first step on, and the loss ends at zero."""

import torch
from torch import nn

torch.manual_seed(0)
y = torch.randint(0, 2, (400,))
x = torch.randn(400, 8) * 0.3 + (y[:, None] * 4 - 2)
net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 2)).bfloat16()
opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.0)
x = x.bfloat16()
for epoch in range(40):
    for b in torch.randperm(400).split(50):
        opt.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(x[b]).float(), y[b])
        loss.backward()
        opt.step()
    if epoch % 10 == 0:
        print(epoch, round(loss.item(), 5))
with torch.no_grad():
    print((net(x).argmax(1) == y).float().mean().item())
