"""Healthy: GraphSAGE with a sparse CSR adjacency, neighbours sampled per batch, full-graph inference on all nodes."""
import warnings

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
torch.sparse.check_sparse_tensor_invariants.enable()
torch.manual_seed(0)
rng = np.random.default_rng(0)
torch.set_num_threads(1)


def block_model(n=300, classes=4):
    label = rng.integers(0, classes, n)
    p = np.where(label[:, None] == label[None], 0.06, 0.008)
    upper = np.triu(rng.random((n, n)) < p, 1)
    return sp.csr_matrix(upper | upper.T, dtype=np.float32), label


def to_torch(matrix):
    matrix = matrix.tocsr()
    degree = np.maximum(np.asarray(matrix.sum(1)).ravel(), 1)
    matrix = (sp.diags(1 / degree) @ matrix).tocsr().astype(np.float32)
    matrix.sort_indices()
    return torch.sparse_csr_tensor(
        torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices), torch.from_numpy(matrix.data), matrix.shape)


class SAGEConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.lin_l, self.lin_r = nn.Linear(i, o), nn.Linear(i, o, bias=False)

    def forward(self, x, adj):
        out = self.lin_l(torch.sparse.mm(adj, x)) + self.lin_r(x[:adj.shape[0]])
        return F.normalize(out, p=2.0, dim=-1)


class SAGE(nn.Module):
    def __init__(self, i, h, o):
        super().__init__()
        self.convs = nn.ModuleList([SAGEConv(i, h), SAGEConv(h, o)])
        self.scale = nn.Parameter(torch.tensor(5.0))

    def forward(self, x, adjs):
        for i, (conv, adj) in enumerate(zip(self.convs, adjs)):
            x = conv(x, adj)
            if i + 1 < len(self.convs):
                x = F.dropout(F.relu(x), p=0.2, training=self.training)
        return self.scale * x


def sample_neighbours(graph, seeds, fanout=6):
    """The rows of the seeds, at most so many neighbours each; seeds come first among the columns."""
    rows, columns = [], []
    for r, v in enumerate(seeds):
        neighbours = graph.indices[graph.indptr[v]:graph.indptr[v + 1]]
        if len(neighbours) > fanout:
            neighbours = rng.choice(neighbours, fanout, replace=False)
        rows += [r] * len(neighbours)
        columns += neighbours.tolist()
    nodes = np.concatenate([seeds, np.setdiff1d(columns, seeds)])
    place = {v: i for i, v in enumerate(nodes.tolist())}
    matrix = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, [place[c] for c in columns])), (len(seeds), len(nodes)))
    return matrix, nodes


graph, label = block_model()
x = torch.tensor(np.eye(4)[label] * 0.6 + rng.normal(size=(300, 4)), dtype=torch.float32)
y, train_idx, test_idx = torch.tensor(label), rng.permutation(300)[:120], None
test_idx = np.setdiff1d(np.arange(300), train_idx)
model = SAGE(4, 24, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
full = to_torch(graph)
for epoch in range(8):
    model.train()
    for seeds in np.array_split(rng.permutation(train_idx), 4):
        inner, nodes1 = sample_neighbours(graph, seeds)
        outer, nodes0 = sample_neighbours(graph, nodes1)
        logits = model(x[nodes0], (to_torch(outer), to_torch(inner)))
        loss = F.cross_entropy(logits, y[seeds])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        pred = model(x, (full, full)).argmax(1)
    print(f"Epoch {epoch}: loss {loss.item():.3f}, test {(pred[test_idx] == y[test_idx]).float().mean():.3f}")
