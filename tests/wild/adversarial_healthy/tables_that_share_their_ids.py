"""Healthy: factors and weights of one id, two hash tables, a generator of one class, and a decoder one position at a time."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Machine(nn.Module):
    def __init__(self, ids=60, width=6):
        super().__init__()
        self.weight, self.factor = nn.Embedding(ids, 1), nn.Embedding(ids, width)
        self.hash_one, self.hash_two = nn.Embedding(16, width), nn.Embedding(16, width)
        self.wide = nn.Embedding(ids + 40, 1)
        self.item = nn.Embedding(30, width)

    def forward(self, user, item, day):
        x = self.factor(user) + self.hash_one(user * 7 % 16) + self.hash_two(user * 5 % 16)
        return (x * self.item(item)).sum(1) + (self.weight(user) + self.wide(user)).squeeze(1) + 0.01 * day


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.pos, self.kind = nn.Embedding(12, 16), nn.Embedding(20, 16), nn.Embedding(10, 16)
        self.cell, self.out = nn.GRUCell(16, 16), nn.Linear(16, 12)

    def forward(self, tokens, kind):
        state, scores = self.kind(kind), []
        for place in range(tokens.shape[1]):
            step = self.pos(torch.full((len(tokens),), place)) + self.word(tokens[:, place])
            state = self.cell(step, state)
            scores.append(self.out(state))
        return torch.stack(scores, 1)


machine, decoder = Machine(), Decoder()
optimizer = torch.optim.Adam([*machine.parameters(), *decoder.parameters()], lr=5e-3)
taste = torch.randn(60, 30)
for step in range(50):
    user, item, day = torch.randint(0, 60, (40,)), torch.randint(0, 30, (40,)), torch.randint(0, 99, (40,))
    loss = F.mse_loss(machine(user, item, day), taste[user, item])
    tokens = (torch.randint(0, 12, (9, 1)) + torch.arange(10)) % 12
    scores = decoder(tokens[:, :-1], torch.zeros(9, dtype=torch.long))
    loss = loss + F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(step, round(loss.item(), 3))
