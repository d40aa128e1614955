"""Sharpness-aware minimisation written out: climb, gradient, come back, descend."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(3)
data = load_digits()
X = torch.as_tensor(data.data).float() / 16
Y = torch.as_tensor(data.target)
perm = torch.randperm(len(X))
train_rows, test_rows = perm[:900], perm[900:]

weights = [torch.randn(64, 80) * 0.17, torch.zeros(80), torch.randn(80, 10) * 0.15, torch.zeros(10)]
for w in weights:
    w.requires_grad_()
velocity = [torch.zeros_like(w) for w in weights]


def loss_on(rows):
    h = F.elu(X[rows] @ weights[0] + weights[1])
    return F.cross_entropy(h @ weights[2] + weights[3], Y[rows])


def accuracy(rows):
    with torch.no_grad():
        h = F.elu(X[rows] @ weights[0] + weights[1])
        return ((h @ weights[2] + weights[3]).argmax(1) == Y[rows]).float().mean().item()


rho, lr, beta = 0.05, 0.1, 0.9
for epoch in range(10):
    for rows in train_rows[torch.randperm(len(train_rows))].split(45):
        loss = loss_on(rows)
        grads = torch.autograd.grad(loss, weights)
        norm = torch.sqrt(sum(g.pow(2).sum() for g in grads)) + 1e-12
        climb = [rho * g / norm for g in grads]
        with torch.no_grad():
            for w, e in zip(weights, climb):
                w.add_(e)
        sharp = torch.autograd.grad(loss_on(rows), weights)
        with torch.no_grad():
            for w, e, g, v in zip(weights, climb, sharp, velocity):
                w.sub_(e)
                v.mul_(beta).add_(g)
                w.sub_(lr * v)
    if epoch % 3 == 0:
        print(f'epoch {epoch} loss {loss.item():.4f} train {accuracy(train_rows):.3f} test {accuracy(test_rows):.3f}')
