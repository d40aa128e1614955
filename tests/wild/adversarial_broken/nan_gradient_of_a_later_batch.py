"""The gradient of a norm at zero is not finite; the first batch with a silent clip comes after some steps."""

import torch
from torch import nn

torch.manual_seed(0)
clips = torch.randn(640, 24)
clips[517] = 0.0
targets = clips.pow(2).mean(1).sqrt()


class Loudness(nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = nn.Linear(24, 24, bias=False)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, clip):
        return self.scale * self.filters(clip).pow(2).sum(1).sqrt()


model = Loudness()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for start in range(0, 640, 16):
    error = model(clips[start : start + 16]) - targets[start : start + 16]
    loss = error.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # error: nan-or-inf
    optimizer.step()
    if start % 160 == 0:
        print(start, loss.item())
