import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold

torch.manual_seed(0)
data = load_diabetes()
X = torch.tensor(data.data, dtype=torch.float32) * 20
y = torch.tensor(data.target, dtype=torch.float32)


def train_fold(xtr, ytr, xva, yva, l2, epochs=40):
    ym, ys = ytr.mean(), ytr.std()
    xm, xs = xtr.mean(0), xtr.std(0)
    xtr, xva = (xtr - xm) / xs, (xva - xm) / xs
    t = (ytr - ym) / ys
    w = torch.zeros(10, requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    for epoch in range(epochs):
        for rows in torch.randperm(len(xtr)).split(64):
            loss = ((xtr[rows] @ w + b - t[rows]) ** 2).mean() + l2 * (w ** 2).sum()
            loss.backward()
            with torch.no_grad():
                w -= 0.05 * w.grad
                b -= 0.05 * b.grad
            w.grad.zero_()
            b.grad.zero_()
    with torch.no_grad():
        pred = (xva @ w + b) * ys + ym
        return (pred - yva).pow(2).mean().sqrt().item()


folds = KFold(n_splits=5, shuffle=True, random_state=1)
results = {}
for l2 in (0.001, 0.03, 0.3):
    scores = []
    for tr, va in folds.split(X):
        scores.append(train_fold(X[tr], y[tr], X[va], y[va], l2))
    results[l2] = sum(scores) / 5
    print(f'l2 {l2}: rmse {results[l2]:.2f}  folds {[round(s, 1) for s in scores]}')
print('best', min(results, key=results.get), 'std of the target', round(y.std().item(), 2))
