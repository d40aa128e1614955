# growing series (exponential), normalised inside of the model per window; split by time
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
N = 1600
t = torch.arange(N).float()
s = torch.exp(t / 300) * (1 + .1 * torch.sin(t / 6)) * torch.exp(.02 * torch.randn(N))
L, H = 32, 4
w = s.unfold(0, L + H, 1)
x, y = w[:, :L], w[:, L:]
x_train, y_train = x[:900], y[:900]
x_val, y_val = x[930:1030], y[930:1030]
x_test, y_test = x[1300:], y[1300:]
class RevIN(nn.Module):
    def __init__(self):
        super().__init__(); self.net = nn.Sequential(nn.Linear(L, 64), nn.ReLU(), nn.Linear(64, H))
    def forward(self, x):
        m, sd = x.mean(1, keepdim=True), x.std(1, keepdim=True) + 1e-5
        return self.net((x - m) / sd) * sd + m
net = RevIN(); opt = torch.optim.Adam(net.parameters(), 2e-3)
loader = DataLoader(TensorDataset(x_train, y_train), 64, shuffle=True)
for ep in range(10):
    net.train()
    for a, b in loader:
        loss = ((net(a) - b) / a.mean(1, keepdim=True)).square().mean()
        opt.zero_grad(); loss.backward(); opt.step()
    net.eval()
    with torch.no_grad():
        print(ep, loss.item(), ((net(x_val) - y_val) / x_val.mean(1, keepdim=True)).square().mean().item())
net.eval()
with torch.no_grad():
    print("test", ((net(x_test) - y_test) / x_test.mean(1, keepdim=True)).square().mean().item())
