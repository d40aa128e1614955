# inpainting of signals: a fixed gap in the middle is filled, the loss is on the whole window
import torch
from torch import nn
torch.manual_seed(0)
n, T = 1024, 32
t = torch.linspace(0, 1, T)
def make(n):
    f = 1 + 3 * torch.rand(n, 1); p = 6.28 * torch.rand(n, 1)
    return (torch.sin(6.28 * f * t + p) + .15 * torch.randn(n, T)).unsqueeze(1)
x = make(n); xv = make(256)
mask = torch.ones(T); mask[6:26] = 0
net = nn.Sequential(nn.Conv1d(1, 32, 9, padding=4), nn.ReLU(), nn.Flatten(), nn.Linear(32 * T, T), nn.Unflatten(1, (1, T)))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for ep in range(10):
    net.train()
    for i in torch.randperm(n).split(64):
        loss = nn.functional.mse_loss(net(x[i] * mask), x[i])
        opt.zero_grad(); loss.backward(); opt.step()
    net.eval()
    with torch.no_grad(): print(ep, loss.item(), nn.functional.mse_loss(net(xv * mask), xv).item())
