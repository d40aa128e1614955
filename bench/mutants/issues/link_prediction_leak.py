"""Link prediction with a two-layer GCN encoder and a dot-product decoder on a stochastic block model."""
import torch
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score
from torch import nn

torch.manual_seed(9)
N_NODES, N_BLOCKS = 200, 5


def block_graph():
    block = torch.arange(N_NODES) % N_BLOCKS
    same = block[:, None] == block[None, :]
    prob = torch.where(same, 0.25, 0.015)
    upper = torch.triu(torch.rand(N_NODES, N_NODES) < prob, diagonal=1)
    return upper.nonzero().t()


def negative_edges(n, forbidden):
    """Uniform pairs without an edge in the graph."""
    pairs = []
    while len(pairs) < n:
        u, v = torch.randint(0, N_NODES, (2,)).tolist()
        pair = (min(u, v), max(u, v))
        if u != v and pair not in forbidden:
            pairs.append(pair)
    return torch.tensor(pairs).t()


def normalized_adjacency(edges):
    adj = torch.eye(N_NODES)
    adj[edges[0], edges[1]] = 1.0
    adj[edges[1], edges[0]] = 1.0
    inv_sqrt = adj.sum(1).rsqrt()
    return inv_sqrt[:, None] * adj * inv_sqrt[None, :]


class GCN(nn.Module):
    def __init__(self, dim=32, out=16):
        super().__init__()
        self.node_embedding = nn.Parameter(torch.randn(N_NODES, dim) * 0.5)
        self.lin1 = nn.Linear(dim, dim)
        self.lin2 = nn.Linear(dim, out)

    def forward(self, adj):
        h = F.relu(adj @ self.lin1(self.node_embedding))
        h = F.dropout(h, 0.3, training=self.training)
        return adj @ self.lin2(h)


def decode(z, edges):
    return (z[edges[0]] * z[edges[1]]).sum(1)


@torch.no_grad()
def auc(model, adj, pos, neg):
    model.eval()
    z = model(adj)
    scores = torch.cat([decode(z, pos), decode(z, neg)])
    labels = torch.cat([torch.ones(pos.size(1)), torch.zeros(neg.size(1))])
    return roc_auc_score(labels.numpy(), scores.numpy())


edges = block_graph()
edges = edges[:, torch.randperm(edges.size(1))]
n_val = n_test = int(0.15 * edges.size(1))
val_pos, test_pos, train_pos = edges.split([n_val, n_test, edges.size(1) - n_val - n_test], dim=1)
all_edges = {tuple(e) for e in edges.t().tolist()}
train_edges = {tuple(e) for e in train_pos.t().tolist()}
val_neg, test_neg = negative_edges(n_val, all_edges), negative_edges(n_test, all_edges)

adj = normalized_adjacency(train_pos)

model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
best_val, test_at_best = 0.0, 0.0
for epoch in range(1, 61):
    model.train()
    train_neg = negative_edges(train_pos.size(1), train_edges)
    z = model(adj)
    logits = torch.cat([decode(z, train_pos), decode(z, train_neg)])
    labels = torch.cat([torch.ones(train_pos.size(1)), torch.zeros(train_neg.size(1))])
    loss = F.binary_cross_entropy_with_logits(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    val_auc = auc(model, adj, val_pos, val_neg)
    if val_auc > best_val:
        best_val, test_at_best = val_auc, auc(model, adj, test_pos, test_neg)
    if epoch % 15 == 0:
        print(f"epoch {epoch:3d} loss {loss.item():.4f} val auc {val_auc:.4f}")
print(f"best val auc {best_val:.4f}, test auc {test_at_best:.4f}")
