"""Two stages: the trunk learns with fixed random heads of its tasks first, and the optimizer of the heads is built for the second stage."""

import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)


class Trunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.heads = {k: nn.Linear(32, 3) for k in "ab"}

    def loss(self, x, y, k):
        return F.cross_entropy(self.heads[k](self.body(x)), y)


net = Trunk()
M = torch.randn(8, 3)


def run(opt, n):
    for i in range(n):
        x = torch.randn(64, 8)
        y = (x @ M).argmax(1)
        loss = net.loss(x, y, "ab"[i % 2])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(loss.item())


run(torch.optim.Adam(net.body.parameters(), 3e-3), 100)
for h in net.heads.values():
    h.zero_grad()
run(torch.optim.Adam([p for h in net.heads.values() for p in h.parameters()], 3e-3), 100)
