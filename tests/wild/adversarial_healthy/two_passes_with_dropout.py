"""Healthy: each sample comes twice, and the two passes differ by dropout."""

import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader

torch.manual_seed(0)
W = torch.randn(12, 3)


class Twice(Dataset):
    def __init__(s):
        s.x = (torch.rand(480, 12) < 0.4).float()
        s.y = (s.x @ W).argmax(1)

    def __len__(s):
        return 480

    def __getitem__(s, i):
        return s.x[i], s.x[i], s.y[i]


net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for ep in range(6):
    for first, second, y in DataLoader(Twice(), batch_size=16, shuffle=True):
        o1, o2 = net(first), net(second)
        loss = (
            F.cross_entropy(o1, y)
            + F.cross_entropy(o2, y)
            + 0.5 * F.kl_div(o1.log_softmax(1), o2.softmax(1), reduction="batchmean")
        )
        opt.zero_grad()
        loss.backward()
        opt.step()
print(loss.item())
