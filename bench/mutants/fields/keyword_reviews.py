"""Sentiment of short reviews of different lengths with a small attention encoder."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(3)
rng = np.random.default_rng(3)

PAD, VOCAB, MAX_LEN = 0, 60, 16
good_words, bad_words, NOT = set(range(1, 11)), set(range(11, 21)), 21


def make_review():
    n = int(rng.integers(4, MAX_LEN))
    words = rng.integers(1, VOCAB, size=n).tolist()
    score = sum(w in good_words for w in words) - sum(w in bad_words for w in words)
    if rng.random() < 0.4:
        words[int(rng.integers(0, n))] = NOT
    return words, -score if NOT in words else score


reviews = []
while len(reviews) < 1900:
    words, score = make_review()
    if score != 0:
        reviews.append((words, int(score > 0)))
train, valid = reviews[:1500], reviews[1500:]


def collate(batch):
    tokens = torch.full((len(batch), MAX_LEN), PAD)
    for i, (words, _) in enumerate(batch):
        tokens[i, : len(words)] = torch.tensor(words)
    return tokens, torch.tensor([label for _, label in batch])


class ReviewNet(nn.Module):
    """One attention layer, then the average of the real words."""

    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.attn = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, 2)

    def forward(self, tokens):
        x = self.emb(tokens)
        padding = tokens == PAD
        a, _ = self.attn(x, x, x, key_padding_mask=padding)
        x = self.norm(x + a)
        keep = (tokens != PAD).unsqueeze(-1).float()
        pooled = (x * keep).sum(1) / keep.sum(1)
        return self.out(pooled)


train_loader = DataLoader(train, batch_size=64, shuffle=True, collate_fn=collate)
valid_loader = DataLoader(valid, batch_size=200, collate_fn=collate)
model = ReviewNet()
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(10):
    model.train()
    total = 0.0
    for tokens, labels in train_loader:
        opt.zero_grad()
        loss = criterion(model(tokens), labels)
        loss.backward()
        opt.step()
        total += loss.item() * len(labels)
    model.eval()
    hits = 0
    with torch.no_grad():
        for tokens, labels in valid_loader:
            hits += (model(tokens).argmax(1) == labels).sum().item()
    print(f"epoch {epoch:2d}  loss {total / len(train):.4f}  valid acc {hits / len(valid):.4f}")
