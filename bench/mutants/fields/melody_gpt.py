"""A tiny decoder-only transformer that continues melodies, trained on next-note prediction."""

import math

import torch
import torch.nn as nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

torch.manual_seed(11)
NOTES, LEN = 24, 20


def melodies(n, gen):
    # every tune walks along a scale with its own step, and jumps now and then
    start = torch.randint(0, NOTES, (n, 1), generator=gen)
    step = torch.randint(1, 4, (n, 1), generator=gen)
    jump = (torch.rand(n, LEN, generator=gen) < 0.12).long() * torch.randint(1, NOTES, (n, LEN), generator=gen)
    return (start + step * torch.arange(LEN) + jump.cumsum(1)) % NOTES


class Block(nn.Module):
    """Pre-norm transformer block."""

    def __init__(self, d, heads):
        super().__init__()
        self.h = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).chunk(3, dim=-1)
        q, k, v = (z.view(b, t, self.h, d // self.h).transpose(1, 2) for z in (q, k, v))
        mask = torch.tril(torch.ones(t, t, dtype=torch.bool))
        y = scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class MelodyGPT(nn.Module):
    """Embeddings, two blocks, a head."""

    def __init__(self, d=32):
        super().__init__()
        self.tok = nn.Embedding(NOTES, d)
        self.pos = nn.Embedding(LEN, d)
        self.blocks = nn.Sequential(Block(d, 2), Block(d, 2))
        self.head = nn.Linear(d, NOTES)

    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.size(1)))
        return self.head(self.blocks(x))


gen = torch.Generator().manual_seed(0)
train, val = melodies(1024, gen), melodies(256, gen)
net = MelodyGPT()
opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.01)

for step in range(161):
    net.train()
    batch = train[torch.randint(0, len(train), (64,), generator=gen)]
    logits = net(batch[:, :-1])
    loss = cross_entropy(logits.reshape(-1, NOTES), batch[:, 1:].reshape(-1))
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 40 == 0:
        net.eval()
        with torch.no_grad():
            vloss = cross_entropy(net(val[:, :-1]).reshape(-1, NOTES), val[:, 1:].reshape(-1)).item()
        print(f"step {step}: train {loss.item():.4f}, val {vloss:.4f}, ppl {math.exp(vloss):.2f}")

# continue held-out tunes note by note
net.eval()
tunes = val[:, :8].clone()
with torch.no_grad():
    for _ in range(3):
        tunes = torch.cat([tunes, net(tunes)[:, -1].argmax(-1, keepdim=True)], dim=1)
right = (tunes[:, 8:] == val[:, 8:11]).float().mean().item()
print(f"continued notes right: {right:.3f}")
