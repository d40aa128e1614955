"""A new loader in each epoch; gradients are set to None by hand where the epoch begins."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
x = torch.randn(60, 7)
y = (x[:, 0] + x[:, 1] > 0).float()
net = nn.Sequential(nn.Linear(7, 20), nn.ReLU(), nn.Linear(20, 1))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(6):
    for p in net.parameters():
        p.grad = None
    for i, (xb, yb) in enumerate(DataLoader(TensorDataset(x, y), batch_size=12, shuffle=True)):
        F.binary_cross_entropy_with_logits(net(xb).squeeze(1), yb).div(3).backward()
        if i % 3 == 2:
            opt.step()  # error: accumulation-window-dropped
            opt.zero_grad()
