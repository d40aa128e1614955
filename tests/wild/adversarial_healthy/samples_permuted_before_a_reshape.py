"""Sequences are permuted to put the steps first, from slices of a tensor and without a loader."""

import torch
from torch import nn

torch.manual_seed(0)
data = torch.randn(500, 9, 5)
labels = (data[:, :4, 0].sum(1) > 0).long()


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.GRU(5, 16), nn.Linear(16, 2)

    def forward(self, x):
        batch, steps, width = x.shape
        _, last = self.rnn(x.permute(1, 0, 2).reshape(steps, batch, width))
        return self.head(last[-1])


reader = Reader()
optimizer = torch.optim.Adam(reader.parameters(), lr=5e-3)
for epoch in range(5):
    order = torch.randperm(len(data))
    for i in range(0, len(data), 20):
        batch = order[i : i + 20]
        loss = nn.functional.cross_entropy(reader(data[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
