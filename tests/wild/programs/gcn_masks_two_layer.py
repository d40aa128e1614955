"""A two-layer GCN on one graph: dense normalised adjacency, training and test masks, full-batch steps, evaluation on the whole graph."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def block_graph(n, classes, g):
    """A stochastic block model with noisy features."""
    labels = torch.randint(0, classes, (n,), generator=g)
    same = labels[:, None] == labels[None]
    edges = torch.rand(n, n, generator=g) < torch.where(same, 0.08, 0.01)
    adjacency = (edges.triu(1) | edges.triu(1).T).float() + torch.eye(n)
    scale = adjacency.sum(1).rsqrt()
    features = F.one_hot(labels, classes).float() + 1.5 * torch.randn(n, classes, generator=g)
    return scale[:, None] * adjacency * scale[None], features, labels


class GCN(nn.Module):
    def __init__(self, fan_in, hidden, classes):
        super().__init__()
        self.first, self.second = nn.Linear(fan_in, hidden, bias=False), nn.Linear(hidden, classes, bias=False)

    def forward(self, adjacency, x):
        x = F.relu(adjacency @ self.first(x))
        x = F.dropout(x, 0.5, self.training)
        return adjacency @ self.second(x)


def train(model, optimizer, adjacency, x, y, mask):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(adjacency, x)[mask], y[mask])
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def test(model, adjacency, x, y, *masks):
    model.eval()
    right = model(adjacency, x).argmax(1) == y
    return [round(right[mask].float().mean().item(), 3) for mask in masks]


torch.manual_seed(0)
adjacency, x, y = block_graph(300, 4, torch.Generator().manual_seed(0))
parts = torch.randperm(300)
train_mask, valid_mask, test_mask = (torch.zeros(300, dtype=torch.bool).index_fill(0, part, True) for part in parts.split([60, 60, 180]))
model = GCN(4, 16, 4)
optimizer = torch.optim.Adam([
    {"params": model.first.parameters(), "weight_decay": 5e-4}, {"params": model.second.parameters(), "weight_decay": 0.0},
], lr=0.02)
best = (0.0, 0.0)
for epoch in range(1, 101):
    loss = train(model, optimizer, adjacency, x, y, train_mask)
    valid, held_out = test(model, adjacency, x, y, valid_mask, test_mask)
    best = max(best, (valid, held_out))
    if epoch % 25 == 0:
        print(f"epoch {epoch} loss {loss:.3f} validation {valid} test {held_out}")
print("best", best)
