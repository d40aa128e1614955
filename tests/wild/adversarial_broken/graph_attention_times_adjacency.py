"""Broken: a graph attention multiplies its scores by the adjacency, so that all other nodes have a score of zero."""
import torch
from torch import nn

torch.manual_seed(1)
torch.set_num_threads(1)
NODES = 60
kinds = torch.arange(NODES) % 3
features = torch.randn(NODES, 8) + 0.5 * nn.functional.one_hot(kinds, 8)
same = kinds[:, None] == kinds[None]
edges = torch.rand(NODES, NODES) < torch.where(same, 0.2, 0.02)
adjacency = (edges | edges.T | torch.eye(NODES, dtype=torch.bool)).float()
known = torch.randperm(NODES)[:30]


class GraphAttention(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.values = nn.Linear(inputs, outputs, bias=False)
        self.source, self.target = nn.Linear(outputs, 1, bias=False), nn.Linear(outputs, 1, bias=False)

    def forward(self, x, adj):
        h = self.values(x)
        e = nn.functional.leaky_relu(self.source(h) + self.target(h).T, 0.2)
        e = e * adj  # error: masked-scores-in-softmax
        return e.softmax(dim=1) @ h


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GraphAttention(8, 16), GraphAttention(16, 3)

    def forward(self, x, adj):
        return self.second(torch.relu(self.first(x, adj)), adj)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(40):
    net.train()
    loss = nn.functional.cross_entropy(net(features, adjacency)[known], kinds[known])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 20 == 19:
        print(f"epoch {epoch}: loss {loss.item():.3f}")
