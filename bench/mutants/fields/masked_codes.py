"""BERT-style pretraining on rows of product codes: hide some codes and guess them from the rest."""

import numpy as np
import torch
from torch import nn

MASK_ID, VOCAB, LENGTH = 0, 31, 10
torch.manual_seed(0)
rng = np.random.default_rng(0)

# each row belongs to one of four product families, and a family walks through its codes in a fixed order
orders = [rng.permutation(np.arange(1, VOCAB))[:LENGTH] for _ in range(4)]


def rows(n):
    fam = rng.integers(0, 4, n)
    shift = rng.integers(0, 3, n)
    return torch.tensor(np.stack([np.roll(orders[f], s) for f, s in zip(fam, shift, strict=True)]))


def mask_tokens(tokens, prob=0.2):
    labels = tokens.clone()
    chosen = torch.rand(tokens.shape) < prob
    labels[~chosen] = -100
    inputs = tokens.clone()
    inputs[chosen] = MASK_ID
    return inputs, labels


class MiniBert(nn.Module):
    """One encoder layer with learned positions."""

    def __init__(self, dim=32):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, dim)
        self.pos = nn.Embedding(LENGTH, dim)
        layer = nn.TransformerEncoderLayer(dim, 2, 64, dropout=0.05, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.lm = nn.Linear(dim, VOCAB)

    def forward(self, x):
        h = self.tok(x) + self.pos(torch.arange(x.size(1)))
        return self.lm(self.enc(h))


train_rows, val_rows = rows(700), rows(200)
val_inputs, val_labels = mask_tokens(val_rows)
model = MiniBert()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
criterion = nn.CrossEntropyLoss()

for epoch in range(12):
    model.train()
    running, seen = 0.0, 0
    for batch in train_rows[torch.randperm(len(train_rows))].split(50):
        inputs, labels = mask_tokens(batch)
        logits = model(inputs)
        loss = criterion(logits.view(-1, VOCAB), labels.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
        seen += 1
    scheduler.step()
    model.eval()
    with torch.no_grad():
        logits = model(val_inputs)
        vloss = criterion(logits.view(-1, VOCAB), val_labels.view(-1)).item()
        scored = val_labels != -100
        acc = (logits.argmax(-1)[scored] == val_labels[scored]).float().mean().item()
    print(f"epoch {epoch + 1:2d}  train {running / seen:.4f}  val {vloss:.4f}  guessed codes {acc:.4f}")
