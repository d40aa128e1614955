"""Positive-unlabelled learning with the non-negative risk estimator."""
import torch

torch.manual_seed(0)
PRIOR = 0.4


def population(n):
    y = (torch.rand(n) < PRIOR).float()
    x = torch.randn(n, 6) + (2 * y[:, None] - 1) * torch.tensor([1.0, 0.8, 0, 0, -0.6, 0])
    return x, y


def positives(n):
    return torch.randn(n, 6) + torch.tensor([1.0, 0.8, 0, 0, -0.6, 0])


P, (U, _) = positives(300), population(1500)
x_test, y_test = population(1000)
w = {'l1': torch.randn(6, 32) * 0.4, 'c1': torch.zeros(32), 'l2': torch.randn(32) * 0.2, 'c2': torch.zeros(1)}
for v in w.values():
    v.requires_grad_()


def g(x):
    return torch.nn.functional.softsign(x @ w['l1'] + w['c1']) @ w['l2'] + w['c2']


def nnpu(gp, gu, beta=0.0):
    positive = PRIOR * torch.sigmoid(-gp).mean()
    negative = torch.sigmoid(gu).mean() - PRIOR * torch.sigmoid(gp).mean()
    if negative < -beta:
        return -negative           # the non-negative correction: go back up
    return positive + negative


opt = torch.optim.Adam(w.values(), lr=5e-3)
for epoch in range(20):
    p_order, u_order = torch.randperm(300), torch.randperm(1500)
    for i in range(15):
        loss = nnpu(g(P[p_order[20 * i:20 * i + 20]]), g(U[u_order[100 * i:100 * i + 100]]))
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 6 == 0:
        with torch.no_grad():
            acc = ((g(x_test) > 0).float() == y_test).float().mean().item()
        print(f'epoch {epoch} risk {loss.item():.4f} test accuracy {acc:.3f}')
