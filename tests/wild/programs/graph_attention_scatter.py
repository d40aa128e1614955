"""Healthy: graph classification with attention by scatter: a softmax over edges by hand, graphs of all sizes joined to one batch."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

torch.manual_seed(0)
torch.set_num_threads(1)


def make_graph():
    """Rings and stars."""
    n, star = int(torch.randint(5, 12, ())), int(torch.randint(0, 2, ()))
    if star:
        source, target = torch.zeros(n - 1, dtype=torch.long), torch.arange(1, n)
    else:
        source, target = torch.arange(n), (torch.arange(n) + 1) % n
    edges = torch.stack([torch.cat([source, target]), torch.cat([target, source])])
    return torch.randn(n, 4), edges[:, torch.randperm(edges.shape[1])], star


def collate(graphs):
    xs, edges, labels, batch, offset = [], [], [], [], 0
    for i, (x, e, label) in enumerate(graphs):
        xs.append(x)
        edges.append(e + offset)
        batch.append(torch.full((len(x),), i))
        labels.append(label)
        offset += len(x)
    return torch.cat(xs), torch.cat(edges, 1), torch.cat(batch), torch.tensor(labels)


def softmax_by_target(score, target, n):
    top = torch.full((n, score.shape[1]), float("-inf")).scatter_reduce(
        0, target[:, None].expand_as(score), score.detach(), "amax")
    weight = torch.exp(score - top[target])
    total = torch.zeros(n, score.shape[1]).index_add(0, target, weight)
    return weight / total[target]


class GATConv(nn.Module):
    def __init__(self, i, o, heads=2):
        super().__init__()
        self.lin = nn.Linear(i, heads * o, bias=False)
        self.att_src, self.att_dst = nn.Parameter(torch.randn(heads, o) * 0.3), nn.Parameter(torch.randn(heads, o) * 0.3)
        self.heads, self.o = heads, o

    def forward(self, x, edges):
        h = self.lin(x).view(-1, self.heads, self.o)
        source, target = edges
        score = F.leaky_relu((h * self.att_src).sum(-1)[source] + (h * self.att_dst).sum(-1)[target], 0.2)
        alpha = softmax_by_target(score, target, len(x))
        out = torch.zeros_like(h).index_add(0, target, alpha[..., None] * h[source])
        return (out + h).flatten(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = GATConv(5, 8), GATConv(16, 8)
        self.norm, self.lin = nn.BatchNorm1d(16), nn.Linear(16, 2)

    def forward(self, x, edges, batch):
        degree = torch.zeros(len(x)).index_add(0, edges[1], torch.ones(edges.shape[1])).log()
        x = F.elu(self.norm(self.conv1(torch.cat([x, degree[:, None]], 1), edges)))
        x = F.elu(self.conv2(x, edges))
        graphs = int(batch.max()) + 1
        pooled = torch.zeros(graphs, 16).index_add(0, batch, x) / torch.bincount(batch, minlength=graphs)[:, None]
        return self.lin(pooled)


train_loader = DataLoader([make_graph() for _ in range(240)], batch_size=30, shuffle=True, collate_fn=collate)
test_loader = DataLoader([make_graph() for _ in range(90)], batch_size=90, collate_fn=collate)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(6):
    model.train()
    for x, edges, batch, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, edges, batch), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, edges, batch, y in test_loader:
            accuracy = (model(x, edges, batch).argmax(1) == y).float().mean().item()
    print(f"Epoch {epoch}: loss {loss.item():.4f} test {accuracy:.3f}")
