"""Healthy: language model trainer: warm-up over optimizer steps, micro-batches accumulated, the ragged last window divided by its own size."""
import math
from itertools import islice

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Blocks(Dataset):
    """Windows over a text of nested counting."""

    def __init__(self, n, block=16):
        text = "".join(f"{i}:{i * 3 % 7}{'ab'[i % 2]};" for i in range(n))
        self.alphabet = sorted(set(text))
        self.ids = torch.tensor([self.alphabet.index(c) for c in text])
        self.block = block

    def __len__(self):
        return (len(self.ids) - 1) // self.block

    def __getitem__(self, i):
        window = self.ids[i * self.block:i * self.block + self.block + 1]
        return window[:-1], window[1:]


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(d), nn.RMSNorm(d)
        self.qkv, self.proj, self.heads = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False), heads
        self.gate, self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(B, T, C))
        h = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))


class LM(nn.Module):
    def __init__(self, vocabulary, d=32):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, d), nn.Embedding(16, d)
        self.blocks = nn.ModuleList(Block(d, 4) for _ in range(2))
        self.norm, self.head = nn.RMSNorm(d), nn.Linear(d, vocabulary, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, ids, labels=None):
        x = self.wte(ids) + self.wpe.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        loss = None if labels is None else nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return logits, loss


def windows(loader, size):
    batches = iter(loader)
    while window := list(islice(batches, size)):
        yield window


torch.manual_seed(0)
torch.set_num_threads(1)
train, valid = Blocks(260), Blocks(40)
model = LM(len(train.alphabet))
loader = DataLoader(train, batch_size=8, shuffle=True)
accumulate, epochs, warmup = 3, 5, 8
total = epochs * math.ceil(len(loader) / accumulate)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95))
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda s: (s + 1) / warmup if s < warmup else 0.5 * (1 + math.cos(math.pi * (s - warmup) / (total - warmup))))
assert len(loader) % accumulate, "the last window is meant to be ragged"
done = 0
for epoch in range(epochs):
    model.train()
    for window in windows(loader, accumulate):
        for ids, labels in window:
            _, loss = model(ids, labels)
            (loss / len(window)).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        done += 1
    model.eval()
    with torch.no_grad():
        losses = [model(*batch)[1].item() for batch in DataLoader(valid, batch_size=8)]
    print(f"epoch {epoch} step {done}/{total} train {loss.item():.3f} valid perplexity {math.exp(sum(losses) / len(losses)):.2f} norm {norm:.2f}")
