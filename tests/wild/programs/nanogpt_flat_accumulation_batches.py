"""A small language model in nanoGPT's flat style: get_batch from a memmap-like array, accumulation with a prefetched batch, best validation kept."""
import math
import time
from contextlib import nullcontext

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

# config
batch_size, block_size, accumulation = 12, 24, 4
n_embd, n_head, dropout, bias = 32, 4, 0.0, False
learning_rate, warmup, max_iters, min_lr = 6e-3, 10, 50, 6e-4
eval_interval, eval_iters, always_save_checkpoint = 25, 5, False
ctx = nullcontext()
torch.manual_seed(1337)
rng = np.random.default_rng(1337)

# data: a Markov chain of 30 symbols
transition = rng.dirichlet(0.1 * np.ones(30), size=30)
tokens = [0]
for _ in range(6000):
    tokens.append(int(rng.choice(30, p=transition[tokens[-1]])))
tokens = np.array(tokens, dtype=np.uint16)
train_data, val_data = tokens[:5400], tokens[5400:]


def get_batch(split):
    data = train_data if split == "train" else val_data
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([torch.from_numpy(data[i:i + block_size].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(data[i + 1:i + 1 + block_size].astype(np.int64)) for i in ix])
    return x, y


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(n_embd, 3 * n_embd, bias=bias), nn.Linear(n_embd, n_embd, bias=bias)
        self.register_buffer("mask", torch.tril(torch.ones(block_size, block_size)).bool()[None, None])

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (u.view(B, T, n_head, -1).transpose(1, 2) for u in self.qkv(x).chunk(3, dim=-1))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = F.softmax(att.masked_fill(~self.mask[:, :, :T, :T], float("-inf")), dim=-1)
        return self.proj((att @ v).transpose(1, 2).reshape(B, T, C))


class TinyGPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(30, n_embd), nn.Parameter(0.02 * torch.randn(block_size, n_embd))
        self.norm1, self.attn = nn.LayerNorm(n_embd), CausalSelfAttention()
        self.norm2, self.mlp = nn.LayerNorm(n_embd), nn.Sequential(nn.Linear(n_embd, 64), nn.GELU(), nn.Linear(64, n_embd), nn.Dropout(dropout))
        self.norm_f, self.head = nn.LayerNorm(n_embd), nn.Linear(n_embd, 30, bias=False)

    def forward(self, idx, targets=None):
        x = self.tok(idx) + self.pos[:idx.shape[1]]
        x = x + self.attn(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        if targets is None:
            return self.head(self.norm_f(x[:, [-1]])), None
        logits = self.head(self.norm_f(x))
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    @torch.no_grad()
    def generate(self, idx, n):
        for _ in range(n):
            logits, _ = self(idx[:, -block_size:])
            idx = torch.cat((idx, torch.multinomial(F.softmax(logits[:, -1], dim=-1), 1)), dim=1)
        return idx


def lr_at(it):
    if it < warmup:
        return learning_rate * (it + 1) / warmup
    return min_lr + 0.5 * (learning_rate - min_lr) * (1 + math.cos(math.pi * (it - warmup) / (max_iters - warmup)))


model = TinyGPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95), weight_decay=0.1)
scaler = torch.amp.GradScaler("cpu", enabled=False)
best_val_loss, checkpoint, t0 = 1e9, None, time.time()
X, Y = get_batch("train")
for iter_num in range(max_iters + 1):
    for group in optimizer.param_groups:
        group["lr"] = lr_at(iter_num)
    if iter_num % eval_interval == 0:
        model.eval()
        with torch.no_grad():
            val = torch.tensor([model(*get_batch("val"))[1] for _ in range(eval_iters)]).mean().item()
        model.train()
        print(f"step {iter_num}: val loss {val:.4f}")
        if val < best_val_loss or always_save_checkpoint:
            best_val_loss = val
            checkpoint = {"model": {k: v.clone() for k, v in model.state_dict().items()}, "iter_num": iter_num}
    for micro_step in range(accumulation):
        with ctx:
            logits, loss = model(X, Y)
            loss = loss / accumulation
        X, Y = get_batch("train")
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
model.load_state_dict(checkpoint["model"])
model.eval()
print("best", checkpoint["iter_num"], f"{best_val_loss:.4f}", model.generate(torch.zeros(1, 1, dtype=torch.long), 12)[0].tolist())
