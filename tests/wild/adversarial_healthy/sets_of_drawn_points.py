"""Points drawn at random form one set, which is pooled on purpose; and rows of an embedding that are updated by hand."""

import torch
from torch import nn

torch.manual_seed(0)
cloud = torch.randn(1000, 3)
height = (cloud[:, :1] * cloud[:, 1:2]).sin()


class Surface(nn.Module):
    def __init__(self, attends):
        super().__init__()
        self.local, self.head = nn.Sequential(nn.Linear(3, 32), nn.ReLU()), nn.Linear(64, 1)
        self.score = nn.Linear(32, 1) if attends else None

    def forward(self, points):
        x = self.local(points)
        whole = x.mean(0, keepdim=True) if self.score is None else (self.score(x).softmax(0) * x).sum(0, keepdim=True)
        return self.head(torch.cat([x, whole.expand_as(x)], 1))


for attends in (False, True):
    model = Surface(attends)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(40):
        rows = torch.randperm(len(cloud))[:128]
        loss = nn.functional.mse_loss(model(cloud[rows]), height[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(f"surface {nn.functional.mse_loss(model(cloud[:128]), height[:128]).item():.3f}")

table, head = nn.Embedding(5000, 8), nn.Linear(8, 1)
words_of = nn.Sequential(table, head)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for _ in range(60):
    words = torch.randint(1, 40, (32,))
    loss = (words_of(words).squeeze(1) - (words % 3).float()).square().mean()
    words_of.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        rows = words.unique()
        table.weight[rows] -= 0.1 * table.weight.grad[rows]
print(f"words {loss.item():.3f}")
