import torch

torch.manual_seed(7)
n_users, n_items, rank = 300, 200, 4
true_u, true_v = torch.randn(n_users, rank), torch.randn(n_items, rank)
bias_u, bias_i = torch.randn(n_users) * 0.5, torch.randn(n_items) * 0.5
full = 3.5 + true_u @ true_v.T * 0.5 + bias_u[:, None] + bias_i[None]

pairs = torch.randperm(n_users * n_items)[:18000]
users, items = pairs // n_items, pairs % n_items
ratings = full[users, items] + 0.1 * torch.randn(len(pairs))
train, held = slice(0, 15000), slice(15000, None)
mu = ratings[train].mean()

U = (torch.randn(n_users, rank) * 0.1).requires_grad_()
V = (torch.randn(n_items, rank) * 0.1).requires_grad_()
bu = torch.zeros(n_users, requires_grad=True)
bi = torch.zeros(n_items, requires_grad=True)


def predict(u, i):
    return mu + (U[u] * V[i]).sum(1) + bu[u] + bi[i]


def rmse(part):
    with torch.no_grad():
        err = predict(users[part], items[part]) - ratings[part]
        return err.pow(2).mean().sqrt().item()


opt = torch.optim.Adam([
    {'params': [U, V], 'weight_decay': 1e-5},
    {'params': [bu, bi], 'weight_decay': 0.0},
], lr=0.02)
print(f'start: held-out rmse {rmse(held):.3f}')
for epoch in range(15):
    for idx in torch.randperm(15000).split(500):
        pred = predict(users[idx], items[idx])
        loss = (pred - ratings[idx]).pow(2).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    if epoch % 5 == 4:
        print(f'epoch {epoch + 1}: train {rmse(train):.3f} held-out {rmse(held):.3f}')
