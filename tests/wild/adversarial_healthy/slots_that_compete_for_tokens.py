"""Slots that compete for the tokens of a text: a softmax over the slots, then shares of the tokens for each slot."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
T, SIZE = 8, 16
tokens = torch.randint(0, 12, (600, T))
labels = (tokens.sort(1).values.diff(dim=1) == 0).any(1).long()


class Slots(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.places = nn.Embedding(12, SIZE), nn.Parameter(0.1 * torch.randn(T, SIZE))
        self.q, self.k, self.v = (nn.Linear(SIZE, SIZE) for _ in range(3))
        self.grow, self.head = nn.GRUCell(SIZE, SIZE), nn.Linear(T * SIZE, 2)

    def forward(self, x):
        h = self.table(x) + self.places
        slots = h
        for _ in range(2):
            weights = (self.q(slots) @ self.k(h).transpose(1, 2) / SIZE**0.5).softmax(dim=1)
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-6)
            slots = self.grow((weights @ self.v(h)).flatten(0, 1), slots.flatten(0, 1)).view_as(slots)
        return self.head(slots.flatten(1))


model = Slots()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(80):
    i = torch.randint(0, 500, (32,))
    loss = F.cross_entropy(model(tokens[i]), labels[i])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
