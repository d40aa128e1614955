"""Healthy: a Gaussian process by its marginal likelihood: hyperparameters as bare float64 tensors, Cholesky in the graph, several restarts."""
import math

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.sort(6 * torch.rand(40, dtype=torch.float64))[0]
y = torch.sin(2 * x) + 0.3 * x + 0.1 * torch.randn_like(x)


def kernel(a, b, theta):
    amplitude, length, _ = theta.exp()
    return amplitude**2 * torch.exp(-0.5 * ((a[:, None] - b[None]) / length) ** 2)


def negative_log_marginal_likelihood(theta):
    K = kernel(x, x, theta) + theta[2].exp() ** 2 * torch.eye(len(x), dtype=x.dtype)
    L = torch.linalg.cholesky(K)
    alpha = torch.cholesky_solve(y[:, None], L)
    return 0.5 * y @ alpha[:, 0] + L.diagonal().log().sum() + 0.5 * len(x) * math.log(2 * math.pi)


best_value, best_theta = float("inf"), None
for restart in range(3):
    theta = torch.randn(3, dtype=torch.float64) * 0.5
    theta.requires_grad = True
    optimizer = torch.optim.Adam([theta], lr=0.05, maximize=False)
    for i in range(80):
        optimizer.zero_grad()
        loss = negative_log_marginal_likelihood(theta)
        loss.backward()
        optimizer.step()
    print(f"restart {restart}: {loss.item():.3f} at {[round(v, 3) for v in theta.exp().tolist()]}")
    if loss.item() < best_value:
        best_value, best_theta = loss.item(), theta.detach().clone()

polish = best_theta.clone().requires_grad_()
lbfgs = torch.optim.LBFGS([polish], max_iter=50, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    loss = negative_log_marginal_likelihood(polish)
    loss.backward()
    return loss


lbfgs.step(closure)
with torch.no_grad():
    grid = torch.linspace(0, 6, 50, dtype=torch.float64)
    K = kernel(x, x, polish) + polish[2].exp() ** 2 * torch.eye(40, dtype=x.dtype)
    mean = kernel(grid, x, polish) @ torch.linalg.solve(K, y)
print(f"error {((mean - torch.sin(2 * grid) - 0.3 * grid) ** 2).mean().sqrt():.4f}, noise {polish[2].exp():.3f}")
