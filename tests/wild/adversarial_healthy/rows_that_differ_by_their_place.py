"""Equal rows have different results on purpose: a state for each stream, members of an ensemble, positions first."""

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)


class Streams(nn.Module):
    """Keeps the state of each of its streams; the table of states is longer than a batch."""

    def __init__(self, most=24):
        super().__init__()
        self.register_buffer("states", torch.zeros(most, 16))
        self.cell, self.head = nn.GRUCell(4, 16), nn.Linear(16, 2)

    def forward(self, x):
        state = self.cell(x, self.states[: len(x)].clone())
        if self.training:
            self.states[: len(x)] = state.detach()
        return self.head(state)


class First(nn.Module):
    """Reads sequences with the positions in the first dimension."""

    def __init__(self, longest=64):
        super().__init__()
        self.places = nn.Parameter(torch.randn(longest, 1, 16) * 0.02)
        self.embed, self.head = nn.Embedding(12, 16), nn.Linear(16, 2)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0)

    def forward(self, words):
        return self.head(self.layer(self.embed(words) + self.places[: len(words)]).mean(0))


def collate(items):
    return nn.utils.rnn.pad_sequence([word for word, _ in items]), torch.tensor([label for _, label in items])


def fit(model, batches):
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for inputs, labels in batches:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(type(model).__name__, loss.item())


signal = torch.randn(60, 16, 4)
fit(Streams(), [(step, (step[:, 0] > 0).long()) for step in signal])
words = [torch.randint(0, 12, (16,)) for _ in range(320)]
loader = DataLoader([(word, int(word[0] > word[1])) for word in words], 16, shuffle=True, collate_fn=collate)
fit(First(), [batch for _ in range(3) for batch in loader])
