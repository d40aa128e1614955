"""Labels of 0 and 1 beside margins: a contrastive loss, a mask of pairs, signs made from labels, ties of a ranking, layers with gates."""
import torch
from sklearn.datasets import load_diabetes, load_digits
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
digits, diabetes = load_digits(), load_diabetes()
x, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
for step in range(90):
    a, b = torch.randint(0, 1400, (2, 64))
    alike = (y[a] == y[b]).float()
    distance = F.pairwise_distance(encoder(x[a]), encoder(x[b]))
    loss = (alike * distance.square() + (1 - alike) * F.relu(2 - distance).square()).mean()
    loss = loss + F.cosine_embedding_loss(encoder(x[a]), encoder(x[b]), torch.where(alike > 0, 1.0, -1.0))
    loss = loss + torch.where(alike == 1, distance, F.relu(1 - distance)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())

levels = (torch.tensor(diabetes.target) / 60).floor()
inputs = torch.tensor(diabetes.data * 20, dtype=torch.float32)
rank = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(rank.parameters(), lr=1e-3)
for step in range(90):
    a, b = torch.randint(0, 400, (2, 64))
    order = (levels[a] - levels[b]).sign()
    scores, others = rank(inputs[a]), rank(inputs[b])
    pairs = (levels[:64, None] > levels[None, :64]).float()
    table = rank(inputs[:64])
    loss = F.margin_ranking_loss(scores, others, order, margin=0.1)
    loss = loss + (pairs * F.relu(0.1 - (table[:, None] - table[None]))).sum() / pairs.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())


class Gated(nn.Module):
    """Layers with a gate for each feature, closed for the odd ones."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(10, 32), nn.Linear(32, 1)
        self.register_buffer("gate", (torch.arange(32) % 2 == 0).float())

    def forward(self, values):
        return self.last(F.relu(1 - self.gate.expand(len(values), 32) * self.first(values))).squeeze(1)


net = Gated()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
risk = (torch.tensor(diabetes.target) > 140).float()
for step in range(90):
    rows = torch.randint(0, 400, (64,))
    loss = F.softplus((1 - 2 * risk[rows]) * net(inputs[rows])).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
