"""Sequence to sequence: learn to write a row of digits backwards with nn.Transformer."""

import torch
import torch.nn as nn

torch.manual_seed(1)
BOS, EOS, VOCAB, N = 10, 11, 12, 4
device = torch.device("cpu")


def get_batch(batch_size, generator):
    digits = torch.randint(0, 10, (batch_size, N), generator=generator)
    bos = torch.full((batch_size, 1), BOS)
    eos = torch.full((batch_size, 1), EOS)
    return digits, torch.cat([bos, digits.flip(1), eos], dim=1)


class Seq2Seq(nn.Module):
    """Encoder and decoder of one layer each with learned positions."""

    def __init__(self, d_model=32):
        super().__init__()
        self.src_emb = nn.Embedding(VOCAB, d_model)
        self.tgt_emb = nn.Embedding(VOCAB, d_model)
        self.pos = nn.Parameter(torch.randn(1, N + 2, d_model) * 0.1)
        self.transformer = nn.Transformer(
            d_model,
            nhead=2,
            num_encoder_layers=1,
            num_decoder_layers=1,
            dim_feedforward=64,
            dropout=0.0,
            batch_first=True,
        )
        self.generator = nn.Linear(d_model, VOCAB)

    def forward(self, src, tgt):
        src = self.src_emb(src) + self.pos[:, : src.size(1)]
        tgt_in = self.tgt_emb(tgt) + self.pos[:, : tgt.size(1)]
        tgt_mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1))
        out = self.transformer(src, tgt_in, tgt_mask=tgt_mask)
        return self.generator(out)


def greedy_decode(model, src):
    ys = torch.full((src.size(0), 1), BOS)
    for _ in range(N + 1):
        logits = model(src, ys)[:, -1]
        ys = torch.cat([ys, logits.argmax(-1, keepdim=True)], dim=1)
    return ys


model = Seq2Seq().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
loss_fn = nn.CrossEntropyLoss()
rng = torch.Generator().manual_seed(1)
val_src, val_tgt = get_batch(200, rng)

for step in range(1, 181):
    model.train()
    src, tgt = get_batch(48, rng)
    logits = model(src.to(device), tgt[:, :-1].to(device))
    loss = loss_fn(logits.reshape(-1, VOCAB), tgt[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 30 == 0:
        model.eval()
        with torch.no_grad():
            val_loss = loss_fn(model(val_src, val_tgt[:, :-1]).reshape(-1, VOCAB), val_tgt[:, 1:].reshape(-1))
        print(f"step {step:4d} train loss {loss.item():.4f} val loss {val_loss.item():.4f}")

model.eval()
with torch.no_grad():
    decoded = greedy_decode(model, val_src)
print("digits right when decoding:", round((decoded[:, 1:] == val_tgt[:, 1:]).float().mean().item(), 4))
print("whole rows right:", round((decoded == val_tgt).all(1).float().mean().item(), 4))
