"""Two networks learn from each other: differences of probabilities times those of their logarithms, and their error."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
one, two = nn.Linear(6, 3), nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (one, two)]
x = torch.randn(300, 6)
y = (x[:, 0] > 0).long() + (x[:, 1] > 1).long()
for _ in range(60):
    rows = torch.randint(300, (32,))
    a, b = one(x[rows]), two(x[rows])
    p, q = a.softmax(1), b.softmax(1)
    apart = ((p - q) * (a.log_softmax(1) - b.log_softmax(1))).sum(1).mean()
    own, other = (scores.gather(1, y[rows, None]).squeeze(1) for scores in (p, q))
    chosen = ((own - other) * (own.log() - other.log())).mean()
    certain = ((torch.ones_like(own) - own) * own.log()).mean()  # focal, with an exponent of one
    supervised = F.cross_entropy(a, y[rows]) + F.cross_entropy(b, y[rows])
    loss = supervised + 0.2 * (apart + chosen - certain) + F.mse_loss(p, q) + (own - other).pow(2).mean()
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
print(f"{loss.item():.3f}")
