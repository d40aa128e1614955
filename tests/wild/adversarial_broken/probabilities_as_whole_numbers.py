"""Sentences of two kinds: probabilities below 1 are converted to whole numbers, and all of them are 0."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
words = torch.randint(0, 40, (900, 12))
kind = ((words < 15).sum(1) > (words >= 25).sum(1)).float()
train = DataLoader(TensorDataset(words[:700], kind[:700]), batch_size=50, shuffle=True)
test = DataLoader(TensorDataset(words[700:], kind[700:]), batch_size=50)
model = nn.Sequential(nn.EmbeddingBag(40, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
criterion = nn.BCEWithLogitsLoss()


def evaluate():
    model.eval()
    hits = 0
    with torch.no_grad():
        for batch, labels in test:
            guesses = torch.sigmoid(model(batch)).long()
            hits += (guesses == labels).sum().item()  # error: metric-off-target
    return hits / len(test.dataset)


for _epoch in range(6):
    model.train()
    for batch, labels in train:
        optimizer.zero_grad()
        criterion(model(batch), labels).backward()
        optimizer.step()
    print(evaluate())
