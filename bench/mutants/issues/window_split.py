"""Predict the change of a spread over the next eight days from its last month (raw tensors)."""
import torch

torch.manual_seed(10)
HISTORY, HORIZON = 20, 8
HIDDEN, EPOCHS, BATCH, LR = 96, 40, 64, 3e-3


def simulate(n=1000, seed=3):
    """A slowly mean-reverting spread."""
    g = torch.Generator().manual_seed(seed)
    noise = torch.randn(n, generator=g)
    x = torch.zeros(n)
    for t in range(1, n):
        x[t] = 0.95 * x[t - 1] + noise[t]
    return x


def make_windows(series):
    w = series.unfold(0, HISTORY + HORIZON, 1)
    return w[:, :HISTORY].clone(), w[:, -1] - w[:, HISTORY - 1]


def split_windows(X, y, frac=0.8):
    n = int(frac * len(X))
    gap = HISTORY + HORIZON
    train, val = torch.arange(n - gap), torch.arange(n, len(X))
    return X[train], y[train], X[val], y[val]


def glorot(a, b):
    return (torch.randn(a, b) * (2 / (a + b)) ** 0.5).requires_grad_()


def zeros(n):
    return torch.zeros(n, requires_grad=True)


X, y = make_windows(simulate())
X_tr, y_tr, X_va, y_va = split_windows(X, y)
x_mean, x_std, y_std = X_tr.mean(), X_tr.std(), y_tr.std()
X_tr, X_va = (X_tr - x_mean) / x_std, (X_va - x_mean) / x_std
y_tr, y_va = y_tr / y_std, y_va / y_std
print(f'{len(X_tr)} training windows, {len(X_va)} validation windows')

params = [glorot(HISTORY, HIDDEN), zeros(HIDDEN), glorot(HIDDEN, HIDDEN), zeros(HIDDEN), glorot(HIDDEN, 1), zeros(1)]


def f(x):
    W1, b1, W2, b2, W3, b3 = params
    h = torch.relu(x @ W1 + b1)
    h = torch.relu(h @ W2 + b2)
    return (h @ W3 + b3).squeeze(1)


def evaluate(x, y):
    with torch.no_grad():
        out = f(x)
    r2 = 1 - (out - y).square().sum() / (y - y.mean()).square().sum()
    hits = (torch.sign(out) == torch.sign(y)).float().mean()
    return r2.item(), hits.item()


opt = torch.optim.AdamW(params, lr=LR, weight_decay=0.01)
for epoch in range(1, EPOCHS + 1):
    total = 0.0
    for idx in torch.randperm(len(X_tr)).split(BATCH):
        loss = torch.mean((f(X_tr[idx]) - y_tr[idx]) ** 2)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    if epoch % 10 == 0:
        r2, hits = evaluate(X_va, y_va)
        print(f'epoch {epoch}: train mse {total / len(X_tr):.4f}, val R2 {r2:.3f}')

r2, hits = evaluate(X_va, y_va)
print(f'validation: R2 {r2:.3f}, direction right in {100 * hits:.1f} % of the days')
