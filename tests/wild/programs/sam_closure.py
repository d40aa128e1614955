"""Healthy: sharpness-aware minimisation in closure form: backward outside, the closure runs at the perturbed weights."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ASAM(torch.optim.Optimizer):
    """Wraps a base optimizer; `step(closure)` perturbs, re-evaluates, restores and updates."""

    def __init__(self, params, base, rho=0.1, eta=0.01):
        params = list(params)
        super().__init__(params, dict(rho=rho, eta=eta))
        self.base = base

    @torch.no_grad()
    def step(self, closure):
        group = self.param_groups[0]
        params = [p for p in group["params"] if p.grad is not None]
        scaled = [(p.abs() + group["eta"]) * p.grad for p in params]
        norm = torch.sqrt(sum(s.pow(2).sum() for s in scaled)) + 1e-12
        perturbations = []
        for p, s in zip(params, scaled):
            e = group["rho"] * (p.abs() + group["eta"]) * s / norm
            p.add_(e)
            perturbations.append(e)
        self.zero_grad()
        with torch.enable_grad():
            loss = closure()
        for p, e in zip(params, perturbations):
            p.sub_(e)
        self.base.step()
        return loss


def main():
    torch.manual_seed(6)
    torch.set_num_threads(1)
    mixing = torch.randn(15, 4)
    x = torch.randn(1000, 15)
    y = (torch.tanh(x) @ mixing).argmax(1)
    train = DataLoader(TensorDataset(x[:768], y[:768]), batch_size=64, shuffle=True)
    net = nn.Sequential(nn.Linear(15, 48), nn.ReLU(), nn.Linear(48, 4))
    ce = nn.CrossEntropyLoss(label_smoothing=0.05)
    base = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    opt = ASAM(net.parameters(), base)

    for epoch in range(6):
        for xb, yb in train:
            def closure():
                loss = ce(net(xb), yb)
                loss.backward()
                return loss

            loss = closure()
            opt.step(closure)
            opt.zero_grad()
        with torch.no_grad():
            acc = (net(x[768:]).argmax(1) == y[768:]).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} val acc {acc:.4f}")


main()
