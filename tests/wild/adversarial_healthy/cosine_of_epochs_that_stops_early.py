# cosine over 100 epochs, few steps in each (whole batches without a loader), stopped early
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(300, 6); y = x[:, :1].sin() + .5 * torch.randn(300, 1)
net = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(net.parameters(), 1e-2); sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=100)
best, bad = 1e9, 0
for ep in range(100):
    net.train()
    for i in torch.randperm(280).split(26):
        loss = nn.functional.mse_loss(net(x[i]), y[i])
        opt.zero_grad(); loss.backward(); opt.step()
    sched.step()
    net.eval()
    with torch.no_grad(): v = nn.functional.mse_loss(net(x[280:]), y[280:]).item()
    if v < best - 1e-4: best, bad = v, 0
    else: bad += 1
    if ep == 9 or bad >= 30: break
print(ep, best)
