"""Nodes of a graph: the loss takes the rows outside of the training mask; accuracies of all parts are printed."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
n = 240
y = torch.randint(0, 4, (n,))
links = (torch.rand(n, n) < torch.where(y[:, None] == y[None], 0.08, 0.015)).float()
links = ((links + links.T) > 0).float() + torch.eye(n)
links = links / links.sum(1, keepdim=True)
x = torch.randn(n, 16)
train_mask = torch.rand(n) < 0.3
test_mask = ~train_mask


class Convolution(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.linear = nn.Linear(inside, outside)

    def forward(self, x):
        return links @ self.linear(x)


model = nn.Sequential(Convolution(16, 32), nn.ReLU(), nn.Dropout(0.3), Convolution(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def accuracy(scores, labels):
    return (scores.argmax(dim=1) == labels).float().mean().item()


for epoch in range(80):
    model.train()
    optimizer.zero_grad()
    scores = model(x)
    F.cross_entropy(scores[~train_mask], y[~train_mask]).backward()  # error: training-on-evaluation-data
    optimizer.step()
    if epoch % 10 == 9:
        model.eval()
        with torch.no_grad():
            scores = model(x)
        print(epoch, accuracy(scores[train_mask], y[train_mask]), accuracy(scores[test_mask], y[test_mask]))
