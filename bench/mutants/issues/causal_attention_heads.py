"""A small GPT on text from a Markov source, with hand-written attention."""
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class GPTConfig:
    vocab: int = 12
    block: int = 24
    n_layer: int = 1
    n_head: int = 4
    n_embd: int = 32
    steps: int = 300
    batch: int = 32
    lr: float = 4e-3


class CausalSelfAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n_head = cfg.n_head
        self.qkv = nn.Linear(cfg.n_embd, 3 * cfg.n_embd)
        self.proj = nn.Linear(cfg.n_embd, cfg.n_embd)
        self.register_buffer("mask", torch.tril(torch.ones(cfg.block, cfg.block)).bool())

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = att.masked_fill(~self.mask[:T, :T], float("-inf")).softmax(dim=-1)
        y = (att @ v).transpose(1, 2).reshape(B, T, C)
        return self.proj(y)


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(cfg.n_embd), nn.LayerNorm(cfg.n_embd)
        self.attn = CausalSelfAttention(cfg)
        self.mlp = nn.Sequential(nn.Linear(cfg.n_embd, 4 * cfg.n_embd), nn.GELU(),
                                 nn.Linear(4 * cfg.n_embd, cfg.n_embd))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tok = nn.Embedding(cfg.vocab, cfg.n_embd)
        self.pos = nn.Embedding(cfg.block, cfg.n_embd)
        self.blocks = nn.Sequential(*[Block(cfg) for _ in range(cfg.n_layer)])
        self.ln_f = nn.LayerNorm(cfg.n_embd)
        self.head = nn.Linear(cfg.n_embd, cfg.vocab)

    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.size(1)))
        return self.head(self.ln_f(self.blocks(x)))


def markov_text(transition, length, generator):
    out = [0]
    for _ in range(length - 1):
        out.append(int(torch.multinomial(transition[out[-1]], 1, generator=generator)))
    return torch.tensor(out)


def get_batch(data, cfg, generator):
    ix = torch.randint(len(data) - cfg.block, (cfg.batch,), generator=generator)
    x = torch.stack([data[i:i + cfg.block] for i in ix])
    y = torch.stack([data[i + 1:i + 1 + cfg.block] for i in ix])
    return x, y


def loss_on(model, x, y):
    logits = model(x)
    return F.cross_entropy(logits.view(-1, logits.size(-1)), y.reshape(-1))


@torch.no_grad()
def estimate_loss(model, data, cfg):
    model.eval()
    n = (len(data) - 1) // cfg.block
    x = data[:n * cfg.block].view(n, cfg.block)
    y = data[1:n * cfg.block + 1].view(n, cfg.block)
    loss = loss_on(model, x, y).item()
    model.train()
    return loss


def main():
    cfg = GPTConfig()
    torch.manual_seed(1337)
    generator = torch.Generator().manual_seed(1337)
    transition = (1.2 * torch.randn(cfg.vocab, cfg.vocab, generator=generator)).softmax(-1)
    train_data = markov_text(transition, 15000, generator)
    val_data = markov_text(transition, 3000, generator)

    model = GPT(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    for step in range(1, cfg.steps + 1):
        x, y = get_batch(train_data, cfg, generator)
        loss = loss_on(model, x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 60 == 0:
            print(f"step {step:4d}  train {loss.item():.4f}  val {estimate_loss(model, val_data, cfg):.4f}")
    print(f"val perplexity {math.exp(estimate_loss(model, val_data, cfg)):.3f}")


if __name__ == "__main__":
    main()
