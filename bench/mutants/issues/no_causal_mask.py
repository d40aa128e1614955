"""Small transformer language model on sequences of a second-order Markov chain."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

VOCAB, SEQ_LEN, N_CHOICES = 12, 20, 2


def markov_table(gen):
    """For each pair of tokens the two tokens that may follow."""
    return torch.randint(0, VOCAB, (VOCAB, VOCAB, N_CHOICES), generator=gen)


def sample_chains(table, n, gen):
    seq = [torch.randint(0, VOCAB, (n,), generator=gen) for _ in range(2)]
    for _ in range(SEQ_LEN - 1):
        pick = torch.randint(0, N_CHOICES, (n,), generator=gen)
        seq.append(table[seq[-2], seq[-1], pick])
    return torch.stack(seq, dim=1)


class TransformerLM(nn.Module):
    def __init__(self, dim=48, heads=4, layers=2):
        super().__init__()
        self.tok_emb = nn.Embedding(VOCAB, dim)
        self.pos_emb = nn.Embedding(SEQ_LEN, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, dim_feedforward=2 * dim, dropout=0.0,
                                           batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, VOCAB)

    def forward(self, idx):
        length = idx.size(1)
        h = self.tok_emb(idx) + self.pos_emb(torch.arange(length))
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        h = self.blocks(h, mask=mask, is_causal=True)
        return self.lm_head(self.norm(h))


def lm_loss(model, batch):
    logits = model(batch[:, :-1])
    return F.cross_entropy(logits.reshape(-1, VOCAB), batch[:, 1:].reshape(-1))


@torch.no_grad()
def perplexity(model, loader):
    model.eval()
    total = sum(lm_loss(model, batch).item() * len(batch) for (batch,) in loader)
    return math.exp(total / len(loader.dataset))


@torch.no_grad()
def valid_continuations(model, table, n, gen):
    """Share of greedily generated tokens that the chain allows."""
    model.eval()
    idx = sample_chains(table, n, gen)[:, :4]
    good = 0
    for _ in range(10):
        nxt = model(idx)[:, -1].argmax(-1)
        allowed = table[idx[:, -2], idx[:, -1]]
        good += (allowed == nxt[:, None]).any(1).sum().item()
        idx = torch.cat([idx, nxt[:, None]], dim=1)
    return good / (10 * n)


def main():
    torch.manual_seed(20)
    gen = torch.Generator().manual_seed(20)
    table = markov_table(gen)
    train_loader = DataLoader(TensorDataset(sample_chains(table, 1000, gen)), batch_size=40, shuffle=True)
    val_loader = DataLoader(TensorDataset(sample_chains(table, 200, gen)), batch_size=100)
    model = TransformerLM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, epochs=8,
                                                    steps_per_epoch=len(train_loader))
    for epoch in range(1, 9):
        model.train()
        for (batch,) in train_loader:
            loss = lm_loss(model, batch)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
        print(f"epoch {epoch}: val perplexity {perplexity(model, val_loader):.3f}")
    print(f"valid continuations: {valid_continuations(model, table, 100, gen):.3f}")


if __name__ == "__main__":
    main()
