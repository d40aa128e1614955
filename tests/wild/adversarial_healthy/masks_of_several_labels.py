"""Each label has masks of the samples that know it."""
import math
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rng = np.random.default_rng(0)

# ratings: one cell of the matrix per user is trained, another is the test; the masks are over users that have them
users, items = 500, 40
u, v = torch.randn(users, 4), torch.randn(items, 4)
R = u @ v.T / 2 + 0.3 * torch.randn(users, items)
item_train, item_test = torch.randint(0, 20, (users,)), torch.randint(20, 40, (users,))
train_rows = torch.randperm(users)[:400].sort().values
test_rows = torch.randperm(users)[:350].sort().values
item_feat = torch.cat([v, 0.1 * torch.randn(items, 2)], 1)
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.items = nn.Embedding(users, 6), nn.Linear(6, 6)
    def forward(self, r, i):
        return (self.users(r) * self.items(item_feat[i])).sum(1)
net = Model()
opt = torch.optim.Adam(net.parameters(), 2e-2, weight_decay=1e-4)
for epoch in range(10):
    for b in train_rows[torch.randperm(len(train_rows))].split(50):
        opt.zero_grad()
        F.mse_loss(net(b, item_train[b]), R[b, item_train[b]]).backward()
        opt.step()
net.eval()
with torch.no_grad():
    out = net(test_rows, item_test[test_rows])
    print("rmse", F.mse_loss(out, R[test_rows, item_test[test_rows]]).sqrt().item())
