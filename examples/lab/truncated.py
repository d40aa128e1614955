"""Truncated backpropagation through time: short windows of a long text, with the state carried from one to the next.

    python truncated.py --data path/to/data

Data: tinyshakespeare/input.txt, from https://github.com/karpathy/char-rnn (data/tinyshakespeare), below --data.
"""

import argparse
import math
import os
from pathlib import Path

import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", type=Path, default=Path(os.environ.get("TRUESTEP_DATA", "data")))
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--characters", type=int, default=200_000)
parser.add_argument("--window", type=int, default=8, help="characters from one gradient to the next")
args = parser.parse_args()

STREAMS = 32
text = (args.data / "tinyshakespeare" / "input.txt").read_text(encoding="utf-8")
alphabet = {character: number for number, character in enumerate(sorted(set(text)))}
tokens = torch.tensor([alphabet[character] for character in text[: args.characters]])
rows = tokens[: len(tokens) // STREAMS * STREAMS].view(STREAMS, -1)  # 32 places of the text are read side by side
split = rows.shape[1] * 9 // 10
train_rows, held_rows = rows[:, :split], rows[:, split:]


class Characters(nn.Module):
    """An LSTM that predicts the next character, and returns its state with the scores."""

    def __init__(self, width=128):
        super().__init__()
        self.embedding = nn.Embedding(len(alphabet), 32)
        self.lstm = nn.LSTM(32, width, batch_first=True)
        self.out = nn.Linear(width, len(alphabet))

    def forward(self, x, state):
        hidden, state = self.lstm(self.embedding(x), state)
        return self.out(hidden), state


def windows(rows):
    """Yield consecutive windows of all streams, and the characters that follow each of theirs."""
    for start in range(0, rows.shape[1] - args.window, args.window):
        yield rows[:, start : start + args.window], rows[:, start + 1 : start + args.window + 1]


def loss_of(scores, y):
    return nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten())


def train(carried):
    """Return the bits of a held-out character, with the state carried from window to window or begun at zero."""
    torch.manual_seed(args.seed)
    model = Characters()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(args.epochs):
        model.train()
        state = None
        for x, y in windows(train_rows):
            optimizer.zero_grad()
            scores, state = model(x, state)
            loss_of(scores, y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            state = tuple(part.detach() for part in state) if carried else None  # the gradient ends, the memory stays

    model.eval()
    state, losses = None, []
    with torch.no_grad():
        for x, y in windows(held_rows):
            scores, state = model(x, state if carried else None)
            losses.append(loss_of(scores, y).item())
    return sum(losses) / len(losses) / math.log(2)


for name, carried in (("state begun at zero", False), ("state carried", True)):
    print(f"{name + ':':20} {train(carried):.3f} bits a held-out character")
