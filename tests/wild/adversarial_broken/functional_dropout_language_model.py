"""A small language model without a DataLoader drops attention weights by a function that does not get the mode."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
rule = torch.randint(0, 16, (16, 16))
stream = [1, 2]
for step in range(3000):
    stream.append(int(rule[stream[-1], stream[-2]]) if step % 9 else step % 16)
data = torch.tensor(stream)
parts = {"train": data[:2500], "val": data[2500:]}
block = 16


def get_batch(split):
    source = parts[split]
    at = torch.randint(len(source) - block, (16,))
    return torch.stack([source[i : i + block] for i in at]), torch.stack([source[i + 1 : i + block + 1] for i in at])


class Model(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.token, self.place = nn.Embedding(16, width), nn.Embedding(block, width)
        self.qkv, self.head = nn.Linear(width, 3 * width), nn.Linear(width, 16)

    def forward(self, idx, targets=None):
        x = self.token(idx) + self.place(torch.arange(idx.shape[1]))
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2) * k.shape[-1] ** -0.5
        later = torch.ones(idx.shape[1], idx.shape[1]).triu(1) == 1
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
        weights = F.dropout(weights, 0.2)  # error: functional-dropout-always-on
        logits = self.head(x + weights @ v)
        loss = None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss


@torch.no_grad()
def estimate_loss():
    out = {}
    model.eval()
    for split in parts:
        losses = torch.zeros(4)
        for k in range(4):
            _, loss = model(*get_batch(split))
            losses[k] = loss.item()
        out[split] = losses.mean().item()
    model.train()
    return out


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(60):
    if step % 15 == 0:
        print(step, estimate_loss())
    _, loss = model(*get_batch("train"))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()

model.eval()
idx = torch.zeros((1, 1), dtype=torch.long)
with torch.no_grad():
    for _ in range(20):
        logits, _ = model(idx[:, -block:])
        idx = torch.cat([idx, torch.multinomial(logits[:, -1].softmax(-1), 1)], dim=1)
print(idx.tolist())
