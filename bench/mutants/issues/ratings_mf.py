# Matrix factorisation for movie ratings, in plain PyTorch tensors
import torch

torch.manual_seed(21)

# synthetic MovieLens-like ratings: only a few of the user/movie pairs were rated
n_users, n_items, true_rank = 300, 120, 3
taste = torch.randn(n_users, true_rank)
genre = torch.randn(n_items, true_rank)
quality = 0.4 * torch.randn(1, n_items)
full = (3.4 + quality + 0.6 * taste @ genre.T + 0.25 * torch.randn(n_users, n_items)).round().clamp(1, 5)

rated = torch.rand(n_users, n_items) < 0.25
users, items = rated.nonzero(as_tuple=True)
perm = torch.randperm(len(users))
n_val = len(perm) // 10
val_ix, test_ix, train_ix = perm[:n_val], perm[n_val:2 * n_val], perm[2 * n_val:]

R = torch.zeros(n_users, n_items)
R[users[train_ix], items[train_ix]] = full[users[train_ix], items[train_ix]]
mask = (R > 0).float()
mean_rating = R.sum() / mask.sum()
print(f'{len(train_ix)} training ratings, mean {mean_rating:.3f}')

# factors and biases
rank = 4
P = (0.1 * torch.randn(n_users, rank)).requires_grad_()
Q = (0.1 * torch.randn(n_items, rank)).requires_grad_()
bu = torch.zeros(n_users, 1, requires_grad=True)
bi = torch.zeros(1, n_items, requires_grad=True)
mu = mean_rating.clone().requires_grad_()
factors = [P, Q, bu, bi, mu]


def predict():
    return mu + bu + bi + P @ Q.T


def rmse(ix):
    with torch.no_grad():
        pred = predict()[users[ix], items[ix]].clamp(1, 5)
        return (pred - full[users[ix], items[ix]]).pow(2).mean().sqrt().item()


lam = 1e-4
opt = torch.optim.Adam(factors, lr=0.02)
best = {'val': float('inf')}
for epoch in range(1, 601):
    err = (predict() - R) * mask
    mse = err.pow(2).sum() / mask.sum()
    reg = sum(f.pow(2).sum() for f in (P, Q, bu, bi))
    loss = mse + lam * reg
    opt.zero_grad()
    loss.backward()
    opt.step()
    if epoch % 20 == 0:
        v = rmse(val_ix)
        if v < best['val']:
            best = {'val': v, 'test': rmse(test_ix), 'epoch': epoch}
        if epoch % 100 == 0:
            print(f'epoch {epoch}: mse {mse.item():.4f} val rmse {v:.4f}')

constant = (full[users[test_ix], items[test_ix]] - mean_rating).pow(2).mean().sqrt().item()
print(f"best epoch {best['epoch']}: val rmse {best['val']:.4f}, test rmse {best['test']:.4f} "
      f"(always predicting the mean: {constant:.4f})")
