# denoising score matching with one small noise level in two dimensions
import torch
from torch import nn
torch.manual_seed(0)
k = torch.randint(0, 4, (2048,))
data = torch.stack([torch.cos(1.57 * k), torch.sin(1.57 * k)], 1) * 2 + .4 * torch.randn(2048, 2)
data = (data - data.mean(0)) / data.std(0)
sigma = 0.02
net = nn.Sequential(nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
loader = torch.utils.data.DataLoader(data, 128, shuffle=True)
for ep in range(40):
    for x in loader:
        eps = torch.randn_like(x)
        score = net(x + sigma * eps)
        loss = nn.functional.mse_loss(sigma * score, -eps)
        opt.zero_grad(); loss.backward(); opt.step()
    if ep % 10 == 9: print(ep, loss.item())
# the score points to the modes
with torch.no_grad():
    print(net(torch.tensor([[1.4, 0.], [0., 1.4], [3., 0.]])))
