"""Link prediction with a two-layer GCN encoder and a dot-product decoder."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.metrics import average_precision_score, roc_auc_score

torch.manual_seed(12)
NODES, GROUPS, DIM = 240, 6, 32


def random_graph(generator):
    group = torch.randint(0, GROUPS, (NODES,), generator=generator)
    prob = torch.where(group[:, None] == group[None, :], 0.12, 0.02)
    upper = torch.triu(torch.rand(NODES, NODES, generator=generator) < prob, diagonal=1)
    features = F.one_hot(group, GROUPS).float()
    features = features + 1.5 * torch.randn(NODES, GROUPS, generator=generator)
    return upper.nonzero().t(), features


def normalized_adjacency(edges):
    a = torch.eye(NODES)
    a[edges[0], edges[1]] = 1.0
    a[edges[1], edges[0]] = 1.0
    d = a.sum(1).rsqrt()
    return d[:, None] * a * d[None, :]


def sample_negatives(n, positive, generator):
    """Node pairs that are not linked in `positive`."""
    negatives = torch.empty(2, 0, dtype=torch.long)
    while negatives.size(1) < n:
        pairs = torch.randint(0, NODES, (2, 2 * n), generator=generator)
        ok = (pairs[0] < pairs[1]) & ~positive[pairs[0], pairs[1]]
        negatives = torch.cat([negatives, pairs[:, ok]], dim=1)
    return negatives[:, :n]


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin1 = nn.Linear(GROUPS, DIM)
        self.lin2 = nn.Linear(DIM, DIM)
        self.free = nn.Embedding(NODES, DIM)

    def encode(self, x, adj):
        h = F.relu(adj @ (self.lin1(x) + self.free.weight))
        h = F.dropout(h, 0.3, training=self.training)
        return adj @ self.lin2(h)

    @staticmethod
    def decode(z, pairs):
        return (z[pairs[0]] * z[pairs[1]]).sum(dim=1)


generator = torch.Generator().manual_seed(12)
edges, x = random_graph(generator)
order = torch.randperm(edges.size(1), generator=generator)
n_val = edges.size(1) // 5
val_pos, train_pos = edges[:, order[:n_val]], edges[:, order[n_val:]]
linked = torch.zeros(NODES, NODES, dtype=torch.bool)
linked[edges[0], edges[1]] = True
train_linked = torch.zeros(NODES, NODES, dtype=torch.bool)
train_linked[train_pos[0], train_pos[1]] = True
val_neg = sample_negatives(n_val, linked, generator)
adj = normalized_adjacency(train_pos)

model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-4)


def train_step():
    model.train()
    optimizer.zero_grad()
    z = model.encode(x, adj)
    neg = sample_negatives(train_pos.size(1), train_linked, generator)
    scores = torch.cat([model.decode(z, train_pos), model.decode(z, neg)])
    target = torch.cat([torch.ones(train_pos.size(1)), torch.zeros(neg.size(1))])
    loss = F.binary_cross_entropy_with_logits(scores, target)
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def evaluate():
    model.eval()
    z = model.encode(x, adj)
    scores = torch.cat([model.decode(z, val_pos), model.decode(z, val_neg)])
    target = torch.cat([torch.ones(n_val), torch.zeros(n_val)])
    return roc_auc_score(target, scores), average_precision_score(target, scores)


for epoch in range(1, 121):
    loss = train_step()
    if epoch % 20 == 0:
        auc, ap = evaluate()
        print(f"epoch {epoch:3d}  loss {loss:.4f}  val AUC {auc:.4f}  val AP {ap:.4f}")
