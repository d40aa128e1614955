"""Evolution strategy: the estimate is copied into existing gradient tensors, then clipped and stepped."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
for p in net.parameters():
    p.grad = torch.zeros_like(p)
X = torch.randn(64, 3)
Y = X.sum(1, keepdim=True)


@torch.no_grad()
def fitness():
    return -nn.functional.mse_loss(net(X), Y).item()


for generation in range(20):
    optimizer.zero_grad(set_to_none=False)
    for _ in range(8):
        noise = [torch.randn_like(p) for p in net.parameters()]
        scores = []
        for sign in (1, -1):
            for p, n in zip(net.parameters(), noise):
                p.data.add_(n, alpha=0.05 * sign)
            scores.append(fitness())
            for p, n in zip(net.parameters(), noise):
                p.data.sub_(n, alpha=0.05 * sign)
        for p, n in zip(net.parameters(), noise):
            p.grad.sub_(n, alpha=(scores[0] - scores[1]) / (2 * 0.05 * 8))
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
print(fitness())
