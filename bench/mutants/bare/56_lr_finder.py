"""Learning-rate range test on a copy of the weights, then training with the rate it found."""
import math
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(0)
D = load_digits()
X, Y = torch.tensor(D.data, dtype=torch.float32) / 16, torch.tensor(D.target)
perm = torch.randperm(len(X))
X, Y = X[perm], Y[perm]
Xtr, Ytr, Xva, Yva = X[:1400], Y[:1400], X[1400:], Y[1400:]


def fresh():
    g = torch.Generator().manual_seed(77)
    return [torch.randn(64, 64, generator=g) / 8, torch.zeros(64), torch.randn(64, 10, generator=g) / 8, torch.zeros(10)]


def forward(p, x):
    return torch.tanh(x @ p[0] + p[1]) @ p[2] + p[3]


def sgd_step(p, idx, lr):
    p = [t.requires_grad_() for t in p]
    loss = F.cross_entropy(forward(p, Xtr[idx]), Ytr[idx])
    grads = torch.autograd.grad(loss, p)
    return [(t - lr * g).detach() for t, g in zip(p, grads)], loss.item()


def find_lr(low=1e-3, high=30.0, n=80):
    p, lrs, losses, smooth = fresh(), [], [], None
    for i in range(n):
        lr = low * (high / low) ** (i / (n - 1))
        p, loss = sgd_step(p, torch.randint(len(Xtr), (64,)), lr)
        smooth = loss if smooth is None else 0.9 * smooth + 0.1 * loss
        lrs.append(lr)
        losses.append(smooth)
        if not math.isfinite(loss) or smooth > 3 * min(losses):
            break
    slope = [(losses[i + 3] - losses[i - 3]) for i in range(3, len(losses) - 3)]
    steepest = min(range(len(slope)), key=slope.__getitem__) + 3
    print(f'range test: {len(lrs)} steps, first {losses[0]:.2f} lowest {min(losses):.2f} last {losses[-1]:.2f}')
    return lrs[steepest]


lr = find_lr()
print(f'learning rate {lr:.3f}')
params = fresh()
for epoch in range(10):
    mean = 0.0
    for idx in torch.randperm(len(Xtr)).split(64):
        params, loss = sgd_step(params, idx, lr)
        mean += loss * len(idx) / len(Xtr)
    if epoch % 3 == 0:
        with torch.no_grad():
            acc = (forward(params, Xva).argmax(1) == Yva).float().mean().item()
        print(f'epoch {epoch} train loss {mean:.4f} validation accuracy {acc:.3f}')
