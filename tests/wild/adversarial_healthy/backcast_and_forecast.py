# backcast and forecast from one block: the model explains its window and the next steps (3-D)
import torch
from torch import nn
torch.manual_seed(0)
t = torch.arange(1600).float(); s = torch.sin(t / 6) + .5 * torch.cos(t / 13) + .3 * torch.randn(1600)
w = s.unfold(0, 24, 1)[:, :, None]
class NB(nn.Module):
    def __init__(s): super().__init__(); s.f = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 24))
    def forward(s, x): return s.f(x[:, :, 0])[:, :, None]
net = NB(); opt = torch.optim.Adam(net.parameters(), 3e-3)
for ep in range(5):
    for i in torch.randperm(1200).split(60):
        loss = nn.functional.mse_loss(net(w[i, :8]), w[i]); opt.zero_grad(); loss.backward(); opt.step()
    with torch.no_grad(): print(ep, loss.item(), nn.functional.mse_loss(net(w[1300:, :8])[:, 8:], w[1300:, 8:]).item())
