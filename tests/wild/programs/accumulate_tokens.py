"""Healthy: accumulation over micro-batches with unequal token counts, summed loss divided by the tokens of the window."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(7)
torch.set_num_threads(1)

VOCAB, PAD, EOS = 24, 0, 1
ACCUM = 3


class Tagger(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.conv = nn.Conv1d(dim, dim, 3, padding=1)
        self.out = nn.Linear(dim, 4)

    def forward(self, tokens):
        h = self.emb(tokens)
        mask = (tokens != PAD).unsqueeze(-1)
        h = h + F.relu(self.conv((h * mask).transpose(1, 2))).transpose(1, 2)
        return self.out(h)


def get_batch(batch_size=16):
    """Label of a token: (token + its left neighbour) mod 4; padding carries -100."""
    lengths = torch.randint(4, 17, (batch_size,))
    tokens = torch.randint(2, VOCAB, (batch_size, int(lengths.max())))
    pad = torch.arange(tokens.size(1))[None] >= lengths[:, None]
    left = F.pad(tokens, (1, 0), value=0)[:, :-1]
    labels = (tokens // 6 + left // 12) % 4
    return tokens.masked_fill(pad, PAD), labels.masked_fill(pad, -100)


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for step in range(60):
    window = [get_batch() for _ in range(ACCUM)]
    num_tokens = sum((labels != -100).sum() for _, labels in window)
    step_loss = 0.0
    optimizer.zero_grad()
    for tokens, labels in window:
        loss_sum = F.cross_entropy(model(tokens).transpose(1, 2), labels, ignore_index=-100, reduction="sum")
        loss = loss_sum / num_tokens
        loss.backward()
        step_loss += loss.item()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss/token {step_loss:.4f}")

model.eval()
with torch.no_grad():
    tokens, labels = get_batch(256)
    pred = model(tokens).argmax(-1)
    keep = labels != -100
    print("token accuracy", (pred[keep] == labels[keep]).float().mean().item())
