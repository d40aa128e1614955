"""Two interleaved streams (left, right codes): each position predicts the next code of that channel, two places later; causal."""

import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
V, T = 20, 24
A = torch.softmax(2 * torch.randn(2, V, V), -1)


def batch(n):
    out = torch.zeros(n, T + 2, dtype=torch.long)
    out[:, :2] = torch.randint(0, V, (n, 2))
    for t in range(2, T + 2):
        out[:, t] = torch.multinomial(A[t % 2][out[:, t - 2]], 1)[:, 0]
    return out


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, 24)
        self.pos = nn.Embedding(2, 24)
        self.rnn = nn.GRU(24, 32, batch_first=True)
        self.out = nn.Linear(32, V)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x) + self.pos(torch.arange(x.shape[1]) % 2))[0])


net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-2)
for step in range(100):
    w = batch(16)
    loss = F.cross_entropy(net(w[:, :-2]).reshape(-1, V), w[:, 2:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
