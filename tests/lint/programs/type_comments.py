"""Types in comments, and names that say nothing."""

import torch
from torch import nn


class M(nn.Module):
    def __init__(self, n):
        # type: (int) -> None
        super(M, self).__init__()
        self.a = nn.Embedding(n, 16)
        self.b = nn.LSTM(16, 32, num_layers=2, dropout=0.2)
        self.c = nn.Linear(32, n)

    def forward(self, x, h=None):
        # type: (torch.Tensor, tuple) -> tuple
        y, h = self.b(self.a(x), h)
        return self.c(y), h


def go(m, d, n):
    # type: (M, list, int) -> float
    o = torch.optim.Adam(m.parameters(), 1e-3)  # type: torch.optim.Optimizer
    s = torch.optim.lr_scheduler.StepLR(o, 1, 0.95)
    f = nn.CrossEntropyLoss()
    t = 0.0
    for _ in range(n):
        h = None
        for x, y in d:
            if h is not None:
                h = tuple(e.detach() for e in h)
            p, h = m(x, h)
            e = f(p.view(-1, p.size(-1)), y.view(-1))  # broken[softmax-before-cross-entropy]: e = f(p.softmax(-1).view(-1, p.size(-1)), y.view(-1))
            o.zero_grad()
            e.backward()
            nn.utils.clip_grad_norm_(m.parameters(), 0.25)
            o.step()
            t += e.item()
        s.step()
    return t
