"""Say whether a sentence from a film review is for or against the film. Two silent mistakes are in it."""

import argparse
import os
import random
from collections import Counter
from pathlib import Path

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", type=Path, default=Path(os.environ.get("TRUESTEP_DATA", "data")))
parser.add_argument("--epochs", type=int, default=8)
args = parser.parse_args()

torch.manual_seed(0)

reviews = []
for label, name in enumerate(["rt-polarity.neg", "rt-polarity.pos"]):
    lines = (args.data / "rt-polarity" / name).read_text(encoding="latin-1").splitlines()
    reviews += [(line.split(), label) for line in lines]
random.Random(0).shuffle(reviews)
train, test = reviews[:9000], reviews[9000:]

counts = Counter(word for words, _ in train for word in words)
vocabulary = {word: number + 1 for number, (word, _) in enumerate(counts.most_common(8000))}


def collate(batch):
    lengths = [len(words) for words, _ in batch]
    x = torch.zeros(len(batch), max(lengths), dtype=torch.long)
    for row, (words, _) in enumerate(batch):
        x[row, : len(words)] = torch.tensor([vocabulary.get(word, 0) for word in words])
    return x, torch.tensor([label for _, label in batch])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(8001, 64, padding_idx=0)
        self.dropout = nn.Dropout(0.5)
        self.hidden = nn.Linear(64, 64)
        self.out = nn.Linear(64, 2)

    def forward(self, x):
        mean = self.embedding(x).sum(1) / (x > 0).sum(1, keepdim=True).clamp(min=1)
        hidden = torch.relu(self.hidden(self.dropout(mean)))
        return torch.softmax(self.out(self.dropout(hidden)), dim=1)


train_loader = DataLoader(train, batch_size=64, shuffle=True, collate_fn=collate)
test_loader = DataLoader(test, batch_size=64, collate_fn=collate)
model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(args.epochs):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

    correct = 0
    with torch.no_grad():
        for x, y in test_loader:
            correct += (model(x).argmax(1) == y).sum().item()
    print(f"epoch {epoch + 1}: test accuracy {correct / len(test):.4f}")
