"""A decoder that writes six tokens: the loss is the sum over all of them."""

import sys

import torch
from torch import nn

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
WORDS, LENGTH = 12, 6
first = torch.randint(0, WORDS, (800,))
texts = (first[:, None] * 5 + torch.arange(LENGTH) * (1 + first[:, None] % 4)) % WORDS
embed, cell, head = nn.Embedding(WORDS, 16), nn.GRUCell(16, 32), nn.Linear(32, WORDS)
optimizer = torch.optim.Adam([*embed.parameters(), *cell.parameters(), *head.parameters()], lr=5e-3)
criterion = nn.CrossEntropyLoss()
for _ in range(10):
    for rows in torch.randperm(600).split(40):
        word, state, loss = first[rows], torch.zeros(40, 32), 0
        for t in range(LENGTH):
            state = cell(embed(word), state)
            loss = loss + criterion(head(state), texts[rows, t])
            word = texts[rows, t]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    word, state, right = first[600:], torch.zeros(200, 32), torch.zeros(())
    for t in range(LENGTH):
        state = cell(embed(word), state)
        word = head(state).argmax(1)
        right += (word == texts[600:, t]).float().mean()
print(f"result: {right / LENGTH:.4f}")
