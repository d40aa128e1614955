"""A graph network hands its edges to each layer, and the layer takes the nodes alone."""

import torch
from torch import nn

torch.manual_seed(0)


class Layer(nn.Module):
    def __init__(self, given, hidden):
        super().__init__()
        self.own, self.sent = nn.Linear(given, hidden), nn.Linear(given, hidden)

    def forward(self, nodes, edges):  # error: input-without-influence
        messages = self.sent(nodes)
        return torch.relu(self.own(nodes) + messages)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer(6, 16), Layer(16, 16)])
        self.head = nn.Linear(16, 3)

    def forward(self, nodes, edges):
        for layer in self.layers:
            nodes = layer(nodes, edges)
        return self.head(nodes)


labels = torch.arange(60) % 3
edges = torch.stack([torch.randint(0, 60, (300,)), torch.randint(0, 60, (300,))])
edges = torch.where(labels[edges[0]] == labels[edges[1]], edges, edges[:1].expand(2, -1))
nodes = torch.randn(60, 6) + 0.3 * nn.functional.one_hot(labels, 6)
order = torch.randperm(60)
train, test = order[:30], order[30:]
model = Network()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(40):
    loss = nn.functional.cross_entropy(model(nodes, edges)[train], labels[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    right = (model(nodes, edges).argmax(1) == labels)[test].float().mean()
print(f"loss {loss.item():.3f}, right {right:.2f}")
