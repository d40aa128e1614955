"""Padded sequences: read at their ends; the last frame of games that are over; counts that are mostly zero."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(7)
N, LENGTH = 120, 12


class AtTheEnds(nn.Module):
    """The state at the end of each sequence, next to the last position of all, which most do not reach."""

    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(4, 16, batch_first=True), nn.Linear(32, 2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=LENGTH)
        return self.head(torch.cat([out[torch.arange(len(x)), lengths - 1], out[:, -1]], 1))


class Counts(nn.Module):
    """Numbers of rare events from the last position: nearly all are exactly zero."""

    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.GRU(4, 16, batch_first=True), nn.Linear(16, 2)
        nn.init.normal_(self.head.weight, std=1.5)
        nn.init.constant_(self.head.bias, -0.6)

    def forward(self, x, lengths):
        return F.relu(self.head(self.rnn(x)[0][:, -1]))


class LastFrame(nn.Module):
    """The value of the last frame of a game; those that ended earlier are padded with zeros, and left out later."""

    def __init__(self):
        super().__init__()
        self.head = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x, lengths):
        return self.head(x[:, -1])


lengths = torch.randint(2, LENGTH, (N,))
lengths[::8] = LENGTH
inputs = torch.randn(N, LENGTH, 4) * (torch.arange(LENGTH) < lengths[:, None]).unsqueeze(2)
targets = torch.rand(N, 2) * (torch.rand(N, 2) < 0.2)
for kind in (AtTheEnds, Counts, LastFrame):
    model = kind()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(4):
        for chosen in torch.randperm(N).split(24):
            x, there = inputs[chosen], lengths[chosen]
            result, wanted = model(x, there), targets[chosen]
            if kind is LastFrame:
                result, wanted = result[there == LENGTH], wanted[there == LENGTH]
            optimizer.zero_grad()
            F.mse_loss(result, wanted).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        print(kind.__name__, float(F.mse_loss(model(inputs, lengths), targets)))
