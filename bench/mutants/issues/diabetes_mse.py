"""Predict disease progression (sklearn diabetes) with a tiny two-layer net, only tensors."""
import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

g = torch.Generator().manual_seed(2147483647)

features, target = load_diabetes(return_X_y=True)
Xtr, Xva, ytr, yva = train_test_split(features, target, test_size=0.2, random_state=1)
Xtr, Xva = torch.tensor(Xtr).float(), torch.tensor(Xva).float()
ytr, yva = torch.tensor(ytr).float(), torch.tensor(yva).float()

# standardise with training statistics
mu, sd = Xtr.mean(0), Xtr.std(0)
Xtr, Xva = (Xtr - mu) / sd, (Xva - mu) / sd
y_mu, y_sd = ytr.mean(), ytr.std()
ttr, tva = (ytr - y_mu) / y_sd, (yva - y_mu) / y_sd

n_in, n_hidden = Xtr.shape[1], 16
params = {
    'w1': torch.randn(n_in, n_hidden, generator=g) / n_in ** 0.5,
    'b1': torch.zeros(n_hidden),
    'w2': torch.randn(n_hidden, 1, generator=g) / n_hidden ** 0.5,
    'b2': torch.zeros(1),
}
for p in params.values():
    p.requires_grad = True


def forward(x):
    h = torch.tanh(x @ params['w1'] + params['b1'])
    return (h @ params['w2'] + params['b2']).squeeze(1)


def mse(pred, true):
    return ((pred - true) ** 2).mean()


lr, wd, bs = 0.02, 1e-3, 32
for epoch in range(60):
    perm = torch.randperm(len(Xtr), generator=g)
    running = 0.0
    for i in range(0, len(Xtr), bs):
        ix = perm[i:i + bs]
        loss = mse(forward(Xtr[ix]), ttr[ix])
        for p in params.values():
            p.grad = None
        loss.backward()
        for name, p in params.items():
            decay = wd if name.startswith('w') else 0.0
            p.data -= lr * (p.grad + decay * p.data)
        running += loss.item() * len(ix)
    if epoch % 10 == 9:
        with torch.no_grad():
            val = mse(forward(Xva), tva).item()
        print(f'epoch {epoch + 1:3d}  train {running / len(Xtr):.4f}  val {val:.4f}')

with torch.no_grad():
    pred = forward(Xva).view(-1) * y_sd + y_mu
    rmse = ((pred - yva) ** 2).mean().sqrt()
    r2 = 1 - ((pred - yva) ** 2).sum() / ((yva - yva.mean()) ** 2).sum()
print(f'validation RMSE {rmse.item():.2f}, R2 {r2.item():.3f}')
