"""The next reading of a series is predicted; the mask is that of the readings before, not of the next ones."""

import torch
import torch.nn as nn
torch.manual_seed(2)
def series(n, T=30):
    t = torch.arange(T).float()
    y = torch.sin(torch.rand(n, 1) * 0.4 * t + 0.2 * t + 6 * torch.rand(n, 1)) + 0.1 * torch.randn(n, T)
    return y, torch.rand(n, T) > 0.35
y, m = series(400)
y = y.masked_fill(~m, 0.0)
rnn, head = nn.GRU(2, 24, batch_first=True), nn.Linear(24, 1)
opt = torch.optim.Adam([*rnn.parameters(), *head.parameters()], 5e-3)
for e in range(5):
    tot = 0
    for j in torch.randperm(400).split(40):
        yb, mb = y[j], m[j]
        h, _ = rnn(torch.stack([yb, mb.float()], -1)[:, :-1])
        pred = head(h).squeeze(-1)
        w = mb[:, :-1].float()
        loss = (nn.functional.l1_loss(pred, yb[:, 1:], reduction="none") * w).sum() / w.sum()  # error: padding-in-loss
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item()
    print(e, tot / 10)
