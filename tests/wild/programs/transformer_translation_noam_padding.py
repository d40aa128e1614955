"""Encoder-decoder transformer with padding masks: Noam schedule per step, ignore_index for padding, label smoothing, greedy decoding."""
import torch
import torch.nn as nn

PAD, BOS, EOS, VOCAB, D = 0, 1, 2, 20, 32


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(VOCAB, D, padding_idx=PAD), nn.Embedding(VOCAB, D, padding_idx=PAD)
        self.position = nn.Embedding(16, D)
        self.transformer = nn.Transformer(D, 4, 1, 1, 64, dropout=0.1, batch_first=True)
        self.generator = nn.Linear(D, VOCAB)

    def embed(self, table, tokens):
        return table(tokens) * D ** 0.5 + self.position(torch.arange(tokens.shape[1]))

    def forward(self, src, tgt):
        causal = torch.triu(torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool), 1)
        h = self.transformer(
            self.embed(self.source, src), self.embed(self.target, tgt), tgt_mask=causal,
            src_key_padding_mask=src == PAD, tgt_key_padding_mask=tgt == PAD, memory_key_padding_mask=src == PAD,
        )
        return self.generator(h)


def batch(n, g):
    """Source: a sentence of unequal length; target: the same words shifted by one, in the same order."""
    lengths = torch.randint(4, 9, (n, 1), generator=g)
    words = torch.randint(3, VOCAB, (n, 8), generator=g)
    inside = torch.arange(8) < lengths
    src = words * inside
    translated = (3 + (words - 2) % (VOCAB - 3)) * inside
    tgt = torch.zeros(n, 10, dtype=torch.long)
    tgt[:, 0], tgt[:, 1:9] = BOS, translated
    tgt.scatter_(1, lengths + 1, EOS)
    return src, tgt


@torch.no_grad()
def greedy(model, src, steps=9):
    model.eval()
    out = torch.full((len(src), 1), BOS)
    for _ in range(steps):
        out = torch.cat([out, model(src, out)[:, -1].argmax(-1, keepdim=True)], dim=1)
    model.train()
    return out


torch.manual_seed(0)
g = torch.Generator().manual_seed(0)
model = Translator()
for p in model.parameters():
    if p.dim() > 1:
        nn.init.xavier_uniform_(p)
criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.05)
optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
noam = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: D ** -0.5 * min((s + 1) ** -0.5, (s + 1) * 40 ** -1.5))
for step in range(160):
    src, tgt = batch(32, g)
    logits = model(src, tgt[:, :-1])
    loss = criterion(logits.transpose(1, 2), tgt[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    noam.step()
    if step % 50 == 0:
        print(f"step {step} loss {loss.item():.3f} rate {noam.get_last_lr()[0]:.4f}")
src, tgt = batch(100, g)
decoded = greedy(model, src)[:, :10]
real = tgt != PAD
print(f"token accuracy {(decoded == tgt)[real].float().mean():.3f}")
