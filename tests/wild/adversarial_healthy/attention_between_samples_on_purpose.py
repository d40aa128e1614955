"""Attention within a row of a table, then between the rows of a batch: predictions depend on the others on purpose."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(240, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
train = DataLoader(TensorDataset(x[:200], y[:200]), 20, shuffle=True)
val = DataLoader(TensorDataset(x[200:], y[200:]), 20)


class RowsAndColumns(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(1, 8)
        self.within = nn.MultiheadAttention(8, 2, batch_first=True)
        self.between = nn.MultiheadAttention(8, 2)
        self.whole = nn.MultiheadAttention(48, 2, batch_first=True)
        self.head = nn.Linear(48, 2)

    def forward(self, x):
        h = self.embed(x.unsqueeze(-1))
        h = h + self.within(h, h, h)[0]
        h = h + self.between(h, h, h)[0]
        rows = h.flatten(1).unsqueeze(0)
        rows = rows + self.whole(rows, rows, rows)[0]
        return self.head(rows.squeeze(0))


model = RowsAndColumns()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for _epoch in range(3):
    model.train()
    for a, b in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(a), b).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(sum((model(a).argmax(1) == b).sum().item() for a, b in val) / 40)
