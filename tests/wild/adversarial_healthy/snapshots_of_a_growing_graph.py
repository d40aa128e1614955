"""Later snapshots hold the nodes of the earlier ones; only fresh nodes are scored."""
import math
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rng = np.random.default_rng(0)

# inductive node classification over years: each snapshot has all nodes up to its year, only the new ones are scored
n = 600
year = torch.sort(torch.randint(2010, 2020, (n,))).values
x = torch.randn(n, 8)
y = (x[:, 0] + x[:, 1] > 0).long()
edges = torch.rand(n, n) < 0.01
adj = (edges | edges.T).float()
train_mask = year <= 2016
val_mask = year <= 2017
test_mask = year <= 2019

class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 2)
    def forward(self, h, a):
        a = a + torch.eye(len(a))
        a = a / a.sum(1, keepdim=True)
        return self.b(a @ F.relu(self.a(h)) + self.a(h))

def snapshot(mask):
    return x[mask], adj[mask][:, mask], y[mask], year[mask]

def score(net, mask, since):
    net.eval()
    h, a, t, when = snapshot(mask)
    with torch.no_grad():
        out = net(h, a).argmax(1)
    net.train()
    new = when > since
    return (out[new] == t[new]).float().mean().item()

net = GCN()
opt = torch.optim.Adam(net.parameters(), 1e-2)
h, a, t, _ = snapshot(train_mask)
best = 0
for epoch in range(40):
    opt.zero_grad()
    F.cross_entropy(net(h, a), t).backward()
    opt.step()
    val_acc = score(net, val_mask, 2016)
    if val_acc > best:
        best, state = val_acc, {k: v.clone() for k, v in net.state_dict().items()}
net.load_state_dict(state)
print("val", best, "test", score(net, test_mask, 2017))
