"""Surnames of 18 languages: which language is a name from, letter by letter?

    python names.py --data path/to/data

Data: names/by_language/*.txt, the folder data/names of https://download.pytorch.org/tutorial/data.zip, below --data.
"""

import argparse
import os
import unicodedata
from pathlib import Path

import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import DataLoader

import truestep as ts

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", type=Path, default=Path(os.environ.get("TRUESTEP_DATA", "data")))
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--names", type=int, default=20_000)
args = parser.parse_args()

LETTERS = "abcdefghijklmnopqrstuvwxyz '-"


def plain(name):
    """Return a name in lower case, without accents and other signs."""
    return "".join(letter for letter in unicodedata.normalize("NFD", name.lower()) if letter in LETTERS)


files = sorted((args.data / "names" / "by_language").glob("*.txt"))
languages = [file.stem for file in files]
# a set: many names are listed twice, and one in both parts would be held out from nothing
names = sorted(
    {(plain(name), place) for place, file in enumerate(files) for name in file.read_text("utf-8").split("\n")}
)
names = [(name, place) for name, place in names if name.strip()]
order = torch.randperm(len(names), generator=torch.Generator().manual_seed(args.seed)).tolist()
names = [names[place] for place in order][: args.names]
split = len(names) * 9 // 10


def collate(samples):
    """Return the letters of the names as packed sequences, and the languages."""
    letters = [torch.tensor([LETTERS.index(letter) for letter in name]) for name, _ in samples]
    return pack_sequence(letters, enforce_sorted=False), torch.tensor([place for _, place in samples])


class Reader(nn.Module):
    """A GRU over letters; its state after the last letter decides."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), 32)
        self.gru = nn.GRU(32, 128)
        self.out = nn.Linear(128, len(languages))

    def forward(self, letters):
        vectors = letters._replace(data=self.embedding(letters.data))
        return self.out(self.gru(vectors)[1][0])


def train(names):
    """Return the trained model and its accuracy on the names that were held out."""
    run = ts.Run(max_epochs=args.epochs, seed=args.seed)
    train_loader = run.loader(names[:split], batch_size=64, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(names[split:], batch_size=500, collate_fn=collate)
    model = run.model(Reader())
    optimizer = run.optimizer(torch.optim.AdamW(model.parameters(), lr=4e-3))
    run.scheduler(ts.schedules.warmup_cosine(optimizer, warmup=0.05))
    for _ in run.epochs():
        for letters, places in run.train(train_loader, model):
            run.step(nn.functional.cross_entropy(model(letters), places))

    with run.evaluate(model):
        accuracy = run.mean("accuracy")
        for letters, places in run.batches(test_loader):
            accuracy.update(model(letters).argmax(dim=1) == places)
    return model, float(accuracy)


_, unordered = train([("".join(sorted(name)), place) for name, place in names])
print(f"letters in the order of the alphabet: {unordered:.1%} of the held-out names")
model, ordered = train(names)
print(f"letters in the order of the name:     {ordered:.1%}")

with torch.no_grad():
    tried = ["Dostoyevsky", "Takahashi", "O'Sullivan"]
    chances = model.eval()(collate([(plain(name), 0) for name in tried])[0]).softmax(dim=1)
for name, row in zip(tried, chances, strict=True):
    print(f"{name}: " + ", ".join(f"{languages[place]} {row[place]:.0%}" for place in row.topk(2).indices.tolist()))
