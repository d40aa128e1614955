# Super-resolution of signals: every second sample in, the whole signal out, 3-D.
import torch
from torch import nn
torch.manual_seed(0)
n, T = 1024, 32
def make(n):
    t = torch.linspace(0, 1, T)
    f = 1 + 4 * torch.rand(n, 1); p = 6.28 * torch.rand(n, 1)
    s = torch.sin(6.28 * f * t + p) + 0.3 * torch.sin(25 * t + 3 * p) + 0.1 * torch.randn(n, T)
    return s.unsqueeze(1)
hi = make(n); hi_val = make(256)
class SR(nn.Module):
    def __init__(s):
        super().__init__()
        s.a = nn.Conv1d(1, 32, 5, padding=2); s.b = nn.Conv1d(32, 32, 5, padding=2); s.c = nn.Conv1d(32, 2, 5, padding=2)
    def forward(s, x):
        h = torch.relu(s.b(torch.relu(s.a(x))))
        o = s.c(h)
        return o.transpose(1, 2).reshape(len(x), 1, -1)
net = SR(); opt = torch.optim.Adam(net.parameters(), 2e-3)
for ep in range(15):
    net.train()
    for i in torch.randperm(n).split(64):
        y = hi[i]
        loss = nn.functional.mse_loss(net(y[:, :, ::2]), y)
        opt.zero_grad(); loss.backward(); opt.step()
    net.eval()
    with torch.no_grad():
        v = nn.functional.mse_loss(net(hi_val[:, :, ::2]), hi_val)
    print(ep, loss.item(), v.item())
