"""Batches as dictionaries, two classes that were concatenated, a binary loss, and a loader for training and testing."""
import torch
from torch import nn
from torch.utils.data import DataLoader


def make_loaders():
    negative = [{"features": torch.randn(5) - 0.7, "label": 0} for _ in range(150)]
    positive = [{"features": torch.randn(5) + 0.7, "label": 1} for _ in range(150)]
    train = DataLoader(negative + positive, batch_size=20, shuffle=False)  # error: training-data-not-shuffled
    test = DataLoader(negative[:20] + positive[:20], batch_size=40)
    return train, test


torch.manual_seed(1)
train, test = make_loaders()
model = nn.Linear(5, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
for epoch in range(4):
    model.train()
    for batch in train:
        logits = model(batch["features"]).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, batch["label"].float())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        (batch,) = test
        hits = ((model(batch["features"]).squeeze(1) > 0).long() == batch["label"]).float().mean()
    print(epoch, hits.item())
