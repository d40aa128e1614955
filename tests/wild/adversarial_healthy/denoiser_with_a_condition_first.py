# conditional diffusion with the condition as the first argument, last layer of zeros, a short run
import torch
from torch import nn
torch.manual_seed(0)
img = torch.randn(640, 1, 8, 8); cond = torch.randn(640, 1, 8, 8)
img = .5 * img + .5 * torch.roll(cond, 1, 3)
class Net(nn.Module):
    def __init__(s):
        super().__init__(); s.i = nn.Conv2d(3, 16, 3, padding=1); s.o = nn.Conv2d(16, 1, 3, padding=1)
        nn.init.zeros_(s.o.weight); nn.init.zeros_(s.o.bias)
    def forward(s, cond, x, t):
        return s.o(torch.nn.functional.silu(s.i(torch.cat([cond, x, t.expand_as(x)], 1))))
net = Net(); opt = torch.optim.AdamW(net.parameters(), 5e-6)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(img, cond), 32, shuffle=True)
for ep in range(9):
    for x, c in loader:
        t = torch.rand(len(x), 1, 1, 1); a = torch.cos(1.57 * t); b = torch.sin(1.57 * t)
        eps = torch.randn_like(x)
        loss = nn.functional.mse_loss(net(c, a * x + b * eps, t), eps)
        opt.zero_grad(); loss.backward(); opt.step()
    print(ep, loss.item())
