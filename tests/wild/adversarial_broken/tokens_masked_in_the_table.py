"""Tokens are masked in place in a row of the table: after some epochs, most of the table is masked."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

MASK = 0


class Sentences(Dataset):
    def __init__(self, tokens):
        self.tokens = tokens

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        tokens = self.tokens[index]
        labels = tokens.clone()
        masked = torch.rand(len(tokens)) < 0.15
        labels[~masked] = -100
        tokens[masked] = MASK  # error: samples-change-between-passes
        return tokens, labels


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 24)
        self.rnn = nn.GRU(24, 32, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, 30)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


torch.manual_seed(0)
start = torch.randint(1, 30, (320, 1))
tokens = (start + torch.arange(8) * 3) % 29 + 1
loader = DataLoader(Sentences(tokens), batch_size=32, shuffle=True)
model = Tagger()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-100)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
