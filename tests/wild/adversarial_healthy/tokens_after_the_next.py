"""Heads for the next tokens and for those after them, in either order, in the model's loss or outside; and a first token left out."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
WORDS, LENGTH = 24, 18
follows = torch.stack([torch.randperm(WORDS) for _ in range(2)])
rows = [torch.randint(0, WORDS, (700,))]
for _ in range(LENGTH - 1):
    rows.append(follows[torch.randint(0, 2, (700,)), rows[-1]])
text = torch.stack(rows, dim=1)


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(WORDS, 24), nn.GRU(24, 32, batch_first=True)
        self.next, self.later = nn.Linear(32, WORDS), nn.Linear(32, WORDS)

    def forward(self, tokens, labels=None):
        hidden = self.rnn(self.embed(tokens))[0]
        first, second = self.next(hidden), self.later(hidden)
        if labels is None:
            return first, second
        near = F.cross_entropy(first[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        far = F.cross_entropy(second[:, :-2].flatten(0, 1), labels[:, 2:].flatten())
        return first, near + 0.3 * far


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(WORDS, 24), nn.GRU(24, 32, batch_first=True), nn.Linear(32, WORDS)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


def outside(model, tokens):
    first, second = model(tokens)
    far = F.cross_entropy(second[:, :-2].flatten(0, 1), tokens[:, 2:].flatten())
    near = F.cross_entropy(first[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    return near + 0.3 * far


def inside(model, tokens):
    return model(tokens, labels=tokens)[1]


def without_the_first(model, tokens):
    """The first token is that of the beginning, and the one behind it is given."""
    scores = model(tokens)[:, 1:-1]
    return F.cross_entropy(scores.flatten(0, 1), tokens[:, 2:].flatten())


def train(model, loss_of):
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for epoch in range(3):
        model.train()
        for chosen in torch.randperm(600).split(40):
            loss = loss_of(model, text[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(f"{loss_of.__name__} {epoch}: {loss_of(model, text[600:]).item():.3f}")


train(TwoHeads(), outside)
train(TwoHeads(), inside)
train(Plain(), without_the_first)
