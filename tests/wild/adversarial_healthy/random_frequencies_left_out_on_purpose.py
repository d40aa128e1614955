# random Fourier features as a parameter (custom init) that is left out of the optimizer on purpose; two trained layers
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.freq = nn.Parameter(torch.empty(2, 32)); nn.init.normal_(self.freq, std=3.)
        self.a = nn.Linear(64, 64); self.b = nn.Linear(64, 1)
    def forward(self, x):
        h = x @ self.freq
        return self.b(torch.relu(self.a(torch.cat([h.sin(), h.cos()], 1))))
net = Net(); x = torch.rand(1000, 2); y = (10 * x[:, :1]).sin() * (7 * x[:, 1:]).cos()
opt = torch.optim.Adam([*net.a.parameters(), *net.b.parameters()], 2e-3)
for ep in range(10):
    for i in torch.randperm(1000).split(50):
        loss = nn.functional.mse_loss(net(x[i]), y[i]); opt.zero_grad(); loss.backward(); opt.step()
    print(ep, loss.item())
