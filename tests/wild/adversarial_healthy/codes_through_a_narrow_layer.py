"""Codes of products through eight numbers and back: the target is the input, and the layer between is narrow."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
codes = torch.stack([torch.randint(0, 10, (1500,)), torch.randint(0, 4, (1500,)), torch.randint(0, 6, (1500,))], 1)
codes = torch.cat([codes, (codes[:, :1] + codes[:, 1:2]) % 10, (codes[:, 2:] * 2) % 10], 1)


class Compressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 12)
        self.encoder = nn.Sequential(nn.Linear(60, 48), nn.ReLU(), nn.Linear(48, 8))
        self.decoder = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 50))

    def encode(self, code):
        return self.encoder(self.embed(code).flatten(1))

    def forward(self, code):
        return self.decoder(self.encode(code)).reshape(-1, 5, 10)


model = Compressor()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
train, held_out = codes[:1200], codes[1200:]
for epoch in range(8):
    model.train()
    for rows in torch.randperm(1200).split(40):
        code = train[rows]
        loss = F.cross_entropy(model(code).transpose(1, 2), code)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    exact = (model(held_out).argmax(-1) == held_out).all(1).float().mean()
print(f"loss {loss.item():.4f}, restored exactly: {exact:.3f}")
