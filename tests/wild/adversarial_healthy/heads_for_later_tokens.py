"""Medusa heads on a frozen language model: head k predicts the token k + 2 places later; the frozen head has the next one."""

import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
V, T = 20, 24
A = torch.softmax(2 * torch.randn(V, V), -1)


def batch(n):
    out = torch.randint(0, V, (n, T))
    for t in range(1, T):
        out[:, t] = torch.multinomial(A[out[:, t - 1]], 1)[:, 0]
    return out


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, 24)
        self.rnn = nn.GRU(24, 32, batch_first=True)
        self.out = nn.Linear(32, V)

    def hidden(self, x):
        return self.rnn(self.emb(x))[0]

    def forward(self, x):
        return self.out(self.hidden(x))


lm = LM()
opt = torch.optim.Adam(lm.parameters(), 1e-2)
for step in range(60):
    w = batch(16)
    loss = F.cross_entropy(lm(w[:, :-1]).reshape(-1, V), w[:, 1:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())


class Medusa(nn.Module):
    def __init__(self, lm, k):
        super().__init__()
        self.lm = lm.requires_grad_(False)
        self.heads = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, V)) for _ in range(k))

    def forward(self, x):
        h = self.lm.hidden(x)
        return [head(h) for head in self.heads]


med = Medusa(lm, 2)
opt = torch.optim.Adam([p for p in med.parameters() if p.requires_grad], 1e-2)
for step in range(60):
    w = batch(16)
    loss = 0.0
    for k, out in enumerate(med(w)):
        loss = loss + 0.8**k * F.cross_entropy(out[:, : -(k + 2)].reshape(-1, V), w[:, k + 2 :].reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
