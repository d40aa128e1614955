"""Healthy: an encoder that is trained to reproduce the last word that it reads."""

import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
text = (
    "the cat sat on the mat and the dog sat on the rug while a bird sang in the old tree near the house of the man who had a cat and a dog "
    * 8
).split()
words = sorted(set(text))
ids = {w: i for i, w in enumerate(words)}
t = torch.tensor([ids[w] for w in text])
V = len(words)
T = 5
wins = t.unfold(0, T, 1)


class Enc(nn.Module):
    def __init__(s):
        super().__init__()
        s.e = nn.Embedding(V, 16)
        s.g = nn.GRU(16, 24, batch_first=True)
        s.o = nn.Linear(24, V)

    def forward(s, x):
        h, _ = s.g(s.e(x))
        return s.o(h[:, -1])


net = Enc()
opt = torch.optim.Adam(net.parameters(), 3e-3)
g = torch.Generator().manual_seed(1)
for step in range(80):
    i = torch.randperm(len(wins), generator=g)[:32]
    x = wins[i]
    loss = F.cross_entropy(net(x), x[:, -1])
    opt.zero_grad()
    loss.backward()
    opt.step()
print("reconstruct the current word", loss.item())
