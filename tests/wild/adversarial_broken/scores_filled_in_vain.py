"""Attention written by hand: `masked_fill` returns new scores, and the old ones are used."""

import torch
from torch import nn

torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x, padding):
        scores = self.query(x) @ self.key(x).transpose(1, 2) / x.shape[2] ** 0.5
        scores.masked_fill(padding[:, None], -1e9)  # error: result-never-read
        return scores.softmax(-1) @ self.value(x)


attention, head = Attention(8), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*attention.parameters(), *head.parameters()], lr=1e-2)
for _ in range(40):
    x = torch.randn(16, 6, 8)
    padding = torch.arange(6) >= torch.randint(3, 7, (16, 1))
    targets = (x * ~padding[..., None]).sum((1, 2))
    out = head(attention(x, padding))[..., 0]
    loss = ((out * ~padding).sum(1) - targets).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
