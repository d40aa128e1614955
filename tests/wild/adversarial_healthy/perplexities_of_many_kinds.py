"""Perplexities of means, of sums over tokens, per word, smoothed and averaged, powers of two of bits, and bits per character."""

import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(2)
text = torch.randint(0, 3, (4000,)).cumsum(0) % 12
train, valid = text[:3000], text[3000:]
model = nn.Sequential(nn.Embedding(12, 16), nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 12))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
smooth_ppl = 12.0
words = 180
for epoch in range(6):
    for start in torch.randperm(29).tolist():
        rows = train[100 * start : 100 * start + 101]
        optimizer.zero_grad()
        F.cross_entropy(model(rows[:-1]), rows[1:]).backward()
        optimizer.step()
    model.eval()
    means, nll, tokens = [], 0.0, 0
    with torch.no_grad():
        for start in range(0, 999, 128):
            rows = valid[start : start + 129]
            loss = F.cross_entropy(model(rows[:-1]), rows[1:], reduction="sum").item()
            means.append(loss / (len(rows) - 1))
            nll += loss
            tokens += len(rows) - 1
    model.train()
    perplexity = math.exp(nll / tokens)
    bits = nll / tokens / math.log(2)
    bpc, same_perplexity = bits, 2**bits
    mean_ppl = sum(map(math.exp, means)) / len(means)
    ppl_of_means = math.exp(sum(means) / len(means))
    word_ppl = math.exp(nll / words)
    smooth_ppl = 0.9 * smooth_ppl + 0.1 * perplexity
    print(f"{epoch}: loss {nll / tokens:.3f} ppl {perplexity:.2f} {same_perplexity:.2f} bpc {bpc:.3f} word ppl {word_ppl:.0f}")
    print(f"   {mean_ppl:.2f} {ppl_of_means:.2f} {smooth_ppl:.2f}")
