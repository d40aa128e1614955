"""Figures that look wrong and are right: perplexities of bits, a table with predictions in its rows, single samples."""

import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
x = torch.randn(300, 6)
labels = (x[:, :3].sum(1) > 0).long() + (x[:, 3] > 1).long()
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(12):
    model.train()
    for rows in torch.randperm(240).split(40):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[rows]), labels[rows])
        loss.backward()
        optimizer.step()

    model.eval()
    table = torch.zeros(3, 3)
    bits, seen, right = 0.0, 0, 0
    with torch.no_grad():
        for part in torch.arange(240, 300).split(20):
            logits = model(x[part])
            bits += F.cross_entropy(logits, labels[part], reduction="sum").item() / math.log(2)
            seen += len(part)
            for predicted, label in zip(logits.argmax(1).tolist(), labels[part].tolist()):
                table[predicted, label] += 1
        for sample, label in zip(x[240:], labels[240:]):  # one sample at a time
            right += (model(sample.unsqueeze(0)).argmax(1) == label).sum().item()
    perplexity = 2 ** (bits / seen)
    recall = table.diag() / table.sum(dim=0).clamp(min=1)
    precision = table.diag() / table.sum(dim=1).clamp(min=1)
    print(f"epoch {epoch} perplexity {perplexity:.3f} accuracy {right / seen:.3f}")
    print("recall", recall.tolist(), "precision", precision.tolist())
