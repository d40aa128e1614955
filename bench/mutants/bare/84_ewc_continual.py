"""Two tasks one after the other (sorted by class on purpose), with elastic weight consolidation."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

digits = load_digits()
X = torch.tensor(digits.data, dtype=torch.float32) / 16
Y = torch.tensor(digits.target)
perm = torch.randperm(len(X), generator=torch.Generator().manual_seed(0))
X, Y = X[perm], Y[perm]
is_test = torch.arange(len(X)) >= 1300


def task(classes):
    member = torch.isin(Y, torch.tensor(classes))
    tr, te = member & ~is_test, member & is_test
    return (X[tr], Y[tr]), (X[te], Y[te])


task_a, task_b = task([0, 1, 2, 3, 4]), task([5, 6, 7, 8, 9])


def new_weights(g):
    return [(torch.randn(64, 100, generator=g) * 0.17).requires_grad_(), torch.zeros(100, requires_grad=True),
            (torch.randn(100, 10, generator=g) * 0.1).requires_grad_(), torch.zeros(10, requires_grad=True)]


def net(w, x):
    return F.relu(x @ w[0] + w[1]) @ w[2] + w[3]


def accuracy(w, data):
    with torch.no_grad():
        return (net(w, data[0]).argmax(1) == data[1]).float().mean().item()


def fisher(w, data, n=200):
    total = [torch.zeros_like(p) for p in w]
    for x, y in zip(data[0][:n], data[1][:n]):
        grads = torch.autograd.grad(F.cross_entropy(net(w, x[None]), y[None]), w)
        for t, g in zip(total, grads):
            t += g.pow(2) / n
    return total


def train(w, data, g, epochs, penalty=None):
    for _ in range(epochs):
        for rows in torch.randperm(len(data[0]), generator=g).split(32):
            loss = F.cross_entropy(net(w, data[0][rows]), data[1][rows])
            if penalty is not None:
                loss = loss + penalty(w)
            grads = torch.autograd.grad(loss, w)
            with torch.no_grad():
                for p, d in zip(w, grads):
                    p -= 0.05 * d


for strength in (0.0, 400.0):
    g = torch.Generator().manual_seed(1)
    w = new_weights(g)
    train(w, task_a[0], g, 12)
    first = accuracy(w, task_a[1])
    anchor, importance = [p.detach().clone() for p in w], fisher(w, task_a[0])
    ewc = (lambda w: strength / 2 * sum((f * (p - a) ** 2).sum() for f, p, a in zip(importance, w, anchor))) if strength else None
    train(w, task_b[0], g, 4, ewc)
    print(f'strength {strength}: task A {first:.3f} then {accuracy(w, task_a[1]):.3f}, task B {accuracy(w, task_b[1]):.3f}')
