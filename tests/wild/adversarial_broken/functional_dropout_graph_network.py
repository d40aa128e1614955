"""A graph network in full batches: one call per evaluation, dropout of the hidden layer in a helper of the module."""
import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout

torch.manual_seed(0)
nodes = 120
labels = torch.arange(nodes) % 4
adjacency = ((labels[:, None] == labels) & (torch.rand(nodes, nodes) < 0.2)).float() + torch.eye(nodes)
adjacency = adjacency / adjacency.sum(1, keepdim=True)
features = torch.randn(nodes, 16) + nn.functional.one_hot(labels, 16)
train = torch.rand(nodes) < 0.3


class GCN(nn.Module):
    def __init__(self, width=16, p=0.5):
        super().__init__()
        self.first, self.second, self.p = nn.Linear(16, width), nn.Linear(width, 4), p

    def hidden(self, x):
        return dropout(torch.relu(adjacency @ self.first(x)), p=self.p)  # error: functional-dropout-always-on

    def forward(self, x):
        return adjacency @ self.second(self.hidden(dropout(x, 0.2, training=self.training)))


model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)


@torch.inference_mode()
def evaluate():
    model.eval()
    out = model(features)
    return (out.argmax(1) == labels)[~train].float().mean().item()


for epoch in range(30):
    model.train()
    optimizer.zero_grad(set_to_none=True)
    cross_entropy(model(features)[train], labels[train]).backward()
    optimizer.step()
    accuracy = evaluate()
    if epoch % 10 == 9:
        print(f"{epoch}: {accuracy:.3f}")
