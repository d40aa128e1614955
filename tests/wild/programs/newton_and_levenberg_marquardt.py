"""Healthy: second-order steps without an optimizer: Newton by torch.func.hessian, Levenberg-Marquardt by jacrev over functional_call."""
import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.func import functional_call, grad, hessian, jacrev

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

# Newton's method for logistic regression
data = load_breast_cancer()
x = torch.tensor((data.data - data.data.mean(0)) / data.data.std(0))[:, :8]
y = torch.tensor(data.target, dtype=torch.float64)


def objective(w):
    return nn.functional.binary_cross_entropy_with_logits(x @ w[:-1] + w[-1], y) + 1e-3 * w.square().sum()


w = torch.zeros(9)
for i in range(8):
    g = grad(objective)(w)
    w = w - torch.linalg.solve(hessian(objective)(w), g)
print(f"Newton: loss {objective(w):.6f}, gradient {grad(objective)(w).norm():.1e}, accuracy {(((x @ w[:-1] + w[-1]) > 0) == y.bool()).double().mean():.3f}")

# Levenberg-Marquardt for a small network
net = nn.Sequential(nn.Linear(1, 10), nn.Tanh(), nn.Linear(10, 1))
names, shapes = zip(*[(n, p.shape) for n, p in net.named_parameters()])
inputs = torch.linspace(-3, 3, 60)[:, None]
outputs = torch.sin(2 * inputs) * torch.exp(-0.2 * inputs.square())


def unflatten(theta):
    parts = theta.split([s.numel() for s in shapes])
    return {n: p.view(s) for n, p, s in zip(names, parts, shapes)}


def residuals(theta):
    return (functional_call(net, unflatten(theta), (inputs,)) - outputs).flatten()


theta, damping = nn.utils.parameters_to_vector(net.parameters()).detach(), 1e-2
start = residuals(theta).square().mean()
for i in range(40):
    r, J = residuals(theta), jacrev(residuals)(theta)
    step = torch.linalg.solve(J.T @ J + damping * torch.eye(len(theta)), J.T @ r)
    if residuals(theta - step).square().sum() < r.square().sum():
        theta, damping = theta - step, damping / 3
    else:
        damping *= 4
nn.utils.vector_to_parameters(theta, net.parameters())
with torch.no_grad():
    print(f"Levenberg-Marquardt: {start:.4f} -> {(net(inputs) - outputs).square().mean():.2e}")
