"""Packed sequences: sentences of one to sixty words in one batch, without a step of the LSTM on padding.

    python packed.py --data path/to/data

Data: rt-polarity/rt-polarity.{neg,pos}, from https://www.cs.cornell.edu/people/pabo/movie-review-data, below --data.
"""

import argparse
import os
from collections import Counter
from pathlib import Path

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", type=Path, default=Path(os.environ.get("TRUESTEP_DATA", "data")))
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--sentences", type=int, default=8000)
args = parser.parse_args()

sentences = []
for label, end in enumerate(("neg", "pos")):
    lines = (args.data / "rt-polarity" / f"rt-polarity.{end}").read_text(encoding="latin-1").splitlines()
    sentences += [(line.split(), label) for line in lines if line.strip()]
order = torch.randperm(len(sentences), generator=torch.Generator().manual_seed(args.seed)).tolist()
sentences = [sentences[place] for place in order]
train_set, held_out = sentences[: args.sentences], sentences[-1000:]
known = Counter(word for words, _ in train_set for word in words)
frequent = [word for word, count in known.items() if count > 1]
number = {word: place for place, word in enumerate(frequent, 2)}  # 0 is padding, 1 is any other word


def collate(samples):
    """Return words of shape (sentences, longest), the lengths and the labels."""
    words = [torch.tensor([number.get(word, 1) for word in words]) for words, _ in samples]
    lengths = torch.tensor([len(sentence) for sentence in words])
    return pad_sequence(words, batch_first=True), lengths, torch.tensor([label for _, label in samples])


class Reviews(nn.Module):
    """The state after the last word of a sentence decides."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(number) + 2, 64, padding_idx=0)
        self.lstm = nn.LSTM(64, 128, batch_first=True)
        self.dropout = nn.Dropout(0.5)
        self.out = nn.Linear(128, 2)

    def forward(self, words, lengths):
        vectors = pack_padded_sequence(self.embedding(words), lengths, batch_first=True, enforce_sorted=False)
        return self.out(self.dropout(self.lstm(vectors)[1][0][0]))


torch.manual_seed(args.seed)
model = Reviews()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loader = DataLoader(train_set, batch_size=64, shuffle=True, collate_fn=collate)
for _ in range(args.epochs):
    model.train()
    for words, lengths, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(words, lengths), labels).backward()
        optimizer.step()

model.eval()
words, lengths, labels = collate(held_out)
longest = torch.full_like(lengths, words.shape[1])  # padding is read as if it were words
with torch.no_grad():
    alone = torch.cat([model(*collate([sample])[:2]) for sample in held_out])
    for name, read in (("padding read", longest), ("packed", lengths)):
        scores = model(words, read)
        accuracy = (scores.argmax(dim=1) == labels).float().mean()
        print(f"{name + ':':13} accuracy {accuracy:.1%}, {(scores - alone).abs().max():.0e} from one by one")
