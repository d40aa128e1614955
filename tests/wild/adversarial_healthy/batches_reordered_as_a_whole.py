"""Batches in another order, both parts alike: by length, shuffled, resampled, mined, split and joined, with results undone."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x, lengths = torch.randn(320, 7, 4), torch.randint(2, 8, (320,))
y = (x[:, 0] @ torch.randn(4, 4)).argmax(1)
loader = DataLoader(TensorDataset(x, lengths, y), batch_size=32, shuffle=True)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.head = nn.GRU(4, 16, batch_first=True), nn.Linear(16, 4)

    def forward(self, steps, lengths):
        packed = pack_padded_sequence(steps, lengths, batch_first=True, enforce_sorted=False)
        return self.head(self.gru(packed)[1][0])


def sorted_by_length(model, x, n, y):
    n, order = n.sort(descending=True)
    return F.cross_entropy(model(x[order], n), y[order])


def undone_behind_the_model(model, x, n, y):
    n, order = n.sort(descending=True)
    return F.cross_entropy(model(x[order], n)[order.argsort()], y)


def shuffled_then_noisy(model, x, n, y):
    order = torch.randperm(len(x))
    x, n, y = x[order], n[order], y[order]
    x = x + 0.3 * torch.randn_like(x)
    return F.cross_entropy(model(x, n), y)


def resampled_by_class(model, x, n, y):
    weights = 1 / torch.bincount(y, minlength=4).float().clamp_min(1)
    index = torch.multinomial(weights[y], len(y), replacement=True)
    return F.cross_entropy(model(x[index], n[index]), y[index])


def hardest_half(model, x, n, y):
    out = model(x, n)
    hard = F.cross_entropy(out, y, reduction="none").topk(16).indices
    return F.cross_entropy(out[hard], y[hard])


def halves_exchanged(model, x, n, y):
    out = torch.cat([model(part, size) for part, size in zip(x.chunk(2)[::-1], n.chunk(2)[::-1])])
    return F.cross_entropy(out, torch.cat(y.chunk(2)[::-1]))


for make in (sorted_by_length, undone_behind_the_model, shuffled_then_noisy, resampled_by_class, hardest_half, halves_exchanged):
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for batch in loader:
            loss = make(model, *batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(make.__name__, loss.item())
