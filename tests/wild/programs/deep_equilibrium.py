"""Healthy: deep equilibrium model: the fixed point under no_grad, one step with a graph, the implicit gradient by a hook on the output."""
import torch
import torch.autograd as autograd
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


class Cell(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.utils.parametrizations.spectral_norm(nn.Linear(n, n))
        self.inject = nn.Linear(64, n)

    def forward(self, z, x):
        return torch.tanh(0.8 * self.linear(z) + self.inject(x))


def fixed_point(f, x0, max_iter=30, tol=1e-4):
    f0, res = f(x0), []
    for k in range(max_iter):
        x, f0 = f0, f(f0)
        res.append((f0 - x).norm().item() / (1e-5 + f0.norm().item()))
        if res[-1] < tol:
            break
    return f0, res


class DEQFixedPoint(nn.Module):
    def __init__(self, f, solver, **kwargs):
        super().__init__()
        self.f, self.solver, self.kwargs = f, solver, kwargs

    def forward(self, x):
        # compute forward pass and re-engage autograd tape
        with torch.no_grad():
            z, self.forward_res = self.solver(lambda z: self.f(z, x), torch.zeros(len(x), 32), **self.kwargs)
        z = self.f(z, x)

        # set up Jacobian vector product (without additional forward calls)
        if self.training:
            z0 = z.clone().detach().requires_grad_()
            f0 = self.f(z0, x)

            def backward_hook(grad):
                g, self.backward_res = self.solver(
                    lambda y: autograd.grad(f0, z0, y, retain_graph=True)[0] + grad, grad, **self.kwargs)
                return g

            z.register_hook(backward_hook)
        return z


digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
train_loader = DataLoader(TensorDataset(x[:1000], y[:1000]), batch_size=100, shuffle=True)
test_loader = DataLoader(TensorDataset(x[1000:], y[1000:]), batch_size=400)
model = nn.Sequential(DEQFixedPoint(Cell(32), fixed_point, tol=1e-3, max_iter=20), nn.Linear(32, 10))
opt = torch.optim.Adam(model.parameters(), lr=5e-3)


def epoch(loader, model, opt=None):
    total_loss, total_err = 0.0, 0.0
    model.eval() if opt is None else model.train()
    for X, Y in loader:
        if opt is None:
            with torch.no_grad():
                yp = model(X)
                loss = F.cross_entropy(yp, Y)
        else:
            yp = model(X)
            loss = F.cross_entropy(yp, Y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        total_err += (yp.max(dim=1)[1] != Y).sum().item()
        total_loss += loss.item() * X.shape[0]
    return total_err / len(loader.dataset), total_loss / len(loader.dataset)


for i in range(6):
    train, test = epoch(train_loader, model, opt), epoch(test_loader, model)
    print("train err %.4f loss %.4f, test err %.4f loss %.4f" % (*train, *test), len(model[0].forward_res), len(model[0].backward_res))
