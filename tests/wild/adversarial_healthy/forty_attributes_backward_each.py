"""Forty binary attributes, one backward each (for per-task gradient norms), retain_graph on purpose."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
K = 40
data = TensorDataset(torch.randn(96, 12), (torch.rand(96, K) > 0.5).float())
loader = DataLoader(data, batch_size=16, shuffle=True)
trunk, heads = nn.Sequential(nn.Linear(12, 32), nn.ReLU()), nn.Linear(32, K)
optimizer = torch.optim.AdamW([*trunk.parameters(), *heads.parameters()], lr=1e-3)
bce = nn.BCEWithLogitsLoss()

for epoch in range(2):
    for x, y in loader:
        out = heads(trunk(x))
        losses = [bce(out[:, k], y[:, k]) for k in range(K)]
        optimizer.zero_grad()
        for k, loss in enumerate(losses):
            loss.backward(retain_graph=k + 1 < K)
        optimizer.step()
    print(epoch, sum(l.item() for l in losses) / K)
