"""SGHMC / SGLD: Bayesian logistic regression, posterior samples by autograd.grad plus noise on purpose."""
import math
import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer

g = torch.Generator().manual_seed(5)
raw = load_breast_cancer()
x, y = torch.tensor(raw.data, dtype=torch.float32), torch.tensor(raw.target, dtype=torch.float32)
perm = torch.randperm(len(x), generator=g)
train, test = perm[:400], perm[400:]
x = (x - x[train].mean(0)) / x[train].std(0)
x = torch.cat([x, torch.ones(len(x), 1)], 1)
N, D = len(train), x.shape[1]


def potential(theta, rows):
    """Minus the log posterior, the likelihood scaled up from the batch."""
    nll = F.binary_cross_entropy_with_logits(x[rows] @ theta, y[rows], reduction='sum')
    return nll * N / len(rows) + 0.5 * theta.pow(2).sum()


theta = torch.zeros(D)
momentum = torch.zeros(D)
eta, friction = 2e-5, 0.05
samples = []
for it in range(1500):
    theta.requires_grad_(True)
    rows = train[torch.randint(N, (50,), generator=g)]
    grad, = torch.autograd.grad(potential(theta, rows), theta)
    with torch.no_grad():
        noise = torch.randn(D, generator=g) * math.sqrt(2 * friction * eta)
        momentum = (1 - friction) * momentum - eta * grad + noise
        theta = theta + momentum
    if it >= 500 and it % 10 == 0:
        samples.append(theta.clone())
    if it % 300 == 0:
        with torch.no_grad():
            print(f'iter {it} potential {potential(theta, train).item():.1f}')

S = torch.stack(samples)
with torch.no_grad():
    single = torch.sigmoid(x[test] @ S[-1])
    averaged = torch.sigmoid(x[test] @ S.T).mean(1)
for name, p in (('last sample', single), ('posterior mean', averaged)):
    print(f'{name}: accuracy {((p > 0.5).float() == y[test]).float().mean().item():.3f} '
          f'nll {F.binary_cross_entropy(p, y[test]).item():.4f}')
