"""Next tokens are trained at the places of a mask, and judged there; means of kept places are weighted by them again."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
WORDS, PAD = 11, 0


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.gru, self.out = nn.Embedding(WORDS, 16), nn.GRU(16, 32, batch_first=True), nn.Linear(32, WORDS)

    def forward(self, x):
        return self.out(self.gru(self.embedding(x))[0])


def batch(rows=16, length=11):
    series = (torch.randint(0, 10, (rows, 1)) + 3 * torch.arange(length)) % 10 + 1
    ends = torch.randint(4, length, (rows, 1))
    following = series[:, 1:].clone()
    following[torch.arange(length - 1)[None] >= ends] = PAD
    return series[:, :-1], following


for kept_only in (True, False):
    model = Language()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(150):
        x, y = batch()
        keep = y != PAD
        if kept_only:
            loss = F.cross_entropy(model(x)[keep], y[keep])
        else:
            each = F.cross_entropy(model(x).transpose(1, 2), y, ignore_index=PAD)
            loss = torch.sum(each * keep) / keep.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        x, y = batch(100)
        mask = y != PAD
        print("right", (model(x).argmax(-1) == y)[mask].float().mean().item())
