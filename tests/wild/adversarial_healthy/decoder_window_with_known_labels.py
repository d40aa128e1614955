# Transformer-like forecast with label_len: the loss is on the whole decoder window (label part + prediction), 3-D windows
import torch
from torch import nn
torch.manual_seed(0)
N = 1500
t = torch.arange(N).float()
s = torch.stack([torch.sin(t / 7) + .3 * torch.randn(N), torch.cos(t / 11) + .3 * torch.randn(N)], 1)
L, lab, H = 24, 6, 12
starts = torch.arange(0, N - L - H)
tr = starts[:1000]; va = starts[1040:]
def batch(i):
    x = torch.stack([s[k:k + L] for k in i.tolist()])
    y = torch.stack([s[k + L - lab:k + L + H] for k in i.tolist()])
    return x, y
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.GRU(2, 32, batch_first=True); self.dec = nn.GRU(2, 32, batch_first=True); self.out = nn.Linear(32, 2)
    def forward(self, x):
        _, h = self.enc(x)
        d = torch.cat([x[:, -lab:], torch.zeros(len(x), H, 2)], 1)
        o, _ = self.dec(d, h)
        return self.out(o)
net = Net(); opt = torch.optim.Adam(net.parameters(), 3e-3)
for ep in range(5):
    net.train()
    for i in tr[torch.randperm(len(tr))].split(64):
        x, y = batch(i)
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
    net.eval()
    with torch.no_grad():
        x, y = batch(va)
        print(ep, loss.item(), nn.functional.mse_loss(net(x)[:, -H:], y[:, -H:]).item())
