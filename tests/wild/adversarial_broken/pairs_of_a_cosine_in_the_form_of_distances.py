"""A hinge on triplets has the form of distances, and gets cosine similarities."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
centres = 2 * torch.randn(5, 12)
labels = torch.arange(400) % 5
x = centres[labels] + torch.randn(400, 12)
by_class = [(labels == number).nonzero().squeeze(1) for number in range(5)]


class Triplets(nn.Module):
    def __init__(self, margin=0.4):
        super().__init__()
        self.margin = margin

    def forward(self, anchor, positive, negative):
        sim_pos = F.cosine_similarity(anchor, positive)
        sim_neg = F.cosine_similarity(anchor, negative)
        return torch.relu(sim_pos - sim_neg + self.margin).mean()  # error: loss-maximised


def drawn(number):
    rows = by_class[number]
    return rows[torch.randint(len(rows), (1,))].item()


net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 6))
criterion = Triplets()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(120):
    anchors = torch.randint(400, (32,))
    same = [drawn(labels[row]) for row in anchors]
    others = [drawn((labels[row] + 1 + torch.randint(4, (1,)).item()) % 5) for row in anchors]
    loss = criterion(net(x[anchors]), net(x[same]), net(x[others]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
