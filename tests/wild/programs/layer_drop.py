"""Healthy: stochastic depth: whole residual blocks skipped at random in training, all of them used in evaluation."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class StochasticDepthNet(nn.Module):
    def __init__(self, dim=24, depth=6, p_last=0.5):
        super().__init__()
        self.inp = nn.Linear(9, dim)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim)) for _ in range(depth))
        self.survival = [1 - p_last * (i + 1) / depth for i in range(depth)]
        self.out = nn.Linear(dim, 1)

    def forward(self, x):
        h = self.inp(x)
        for block, p in zip(self.blocks, self.survival):
            if self.training:
                if torch.rand(()).item() < p:
                    h = h + block(h)
            else:
                h = h + p * block(h)
        return self.out(h)


def make(n):
    x = torch.randn(n, 9)
    return x, torch.sin(x[:, :3]).sum(1, keepdim=True) + 0.5 * x[:, 3:4]


x_tr, y_tr = make(512)
x_va, y_va = make(256)
net = StochasticDepthNet()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
mse = nn.MSELoss()
for epoch in range(12):
    net.train()
    for i in torch.randperm(512).split(32):
        opt.zero_grad()
        loss = mse(net(x_tr[i]), y_tr[i])
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        val = mse(net(x_va), y_va).item()
    if epoch % 3 == 2:
        print("epoch", epoch, "val mse", round(val, 4))
