"""Model the characters of Shakespeare's plays with an LSTM. Two silent mistakes are in it."""

import argparse
import os
from pathlib import Path

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", type=Path, default=Path(os.environ.get("TRUESTEP_DATA", "data")))
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--characters", type=int, default=100_000)
args = parser.parse_args()

torch.manual_seed(0)

text = next((args.data / "tinyshakespeare").glob("*.txt")).read_text(encoding="utf-8")
alphabet = sorted(set(text))
tokens = torch.tensor([alphabet.index(character) for character in text[: args.characters + 20_000]])
train, test = tokens[: args.characters], tokens[args.characters :]


class Windows(Dataset):
    def __init__(self, tokens, length=64):
        self.tokens, self.length = tokens, length

    def __len__(self):
        return (len(self.tokens) - 1) // self.length

    def __getitem__(self, index):
        start = index * self.length
        return self.tokens[start : start + self.length], self.tokens[start + 1 : start + self.length + 1]


class Characters(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embedding = nn.Embedding(size, 64)
        self.lstm = nn.LSTM(64, 128, batch_first=True)
        self.out = nn.Linear(128, size)

    def forward(self, x):
        return self.out(self.lstm(self.embedding(x))[0])


train_loader = DataLoader(Windows(train), batch_size=32, shuffle=True)
test_loader = DataLoader(Windows(test), batch_size=32)
model = Characters(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)


def loss_of(x, y):
    return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


for epoch in range(args.epochs):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss_of(x, y).backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scheduler.step()

    with torch.no_grad():
        total = sum(loss_of(x, y).item() * len(x) for x, y in test_loader)
    bits = total / len(test_loader.dataset) / 0.6931
    print(f"epoch {epoch + 1}: {bits:.3f} bits a character on held-out text")
