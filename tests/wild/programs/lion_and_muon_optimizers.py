"""Healthy: custom optimizers: Muon (orthogonalised momentum) for matrices, Lion for the rest, driven together in one loop."""
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim import Optimizer

torch.manual_seed(0)
torch.set_num_threads(1)


class Lion(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in filter(lambda p: p.grad is not None, group["params"]):
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                beta1, beta2 = group["betas"]
                p.data.mul_(1.0 - group["lr"] * group["weight_decay"])
                update = state["exp_avg"].clone().mul_(beta1).add(p.grad, alpha=1.0 - beta1).sign_()
                p.add_(update, alpha=-group["lr"])
                state["exp_avg"].mul_(beta2).add_(p.grad, alpha=1.0 - beta2)
        return loss


def zeropower_via_newtonschulz5(G, steps=5):
    a, b, c = (3.4445, -4.7750, 2.0315)
    X = G / (G.norm() + 1e-7)
    if G.size(0) > G.size(1):
        X = X.T
    for _ in range(steps):
        A = X @ X.T
        X = a * X + (b * A + c * A @ A) @ X
    return X.T if G.size(0) > G.size(1) else X


class Muon(Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.95, nesterov=True):
        super().__init__(params, dict(lr=lr, momentum=momentum, nesterov=nesterov))

    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                g = p.grad
                if g is None:
                    continue
                buf = self.state[p].setdefault("momentum_buffer", torch.zeros_like(g))
                buf.mul_(group["momentum"]).add_(g)
                g = g.add(buf, alpha=group["momentum"]) if group["nesterov"] else buf
                p.data.add_(zeropower_via_newtonschulz5(g), alpha=-group["lr"] * max(1, g.size(0) / g.size(1)) ** 0.5)


digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
matrices = [p for p in model[:-1].parameters() if p.ndim == 2]
others = [p for p in model.parameters() if not any(p is m for m in matrices)]
optimizers = [Muon(matrices), Lion(others, lr=2e-3, weight_decay=1e-2)]
schedulers = [torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.0, total_iters=6 * 13) for opt in optimizers]
for epoch in range(6):
    for index in torch.randperm(1300).split(100):
        nn.functional.cross_entropy(model(x[index]), y[index]).backward()
        for opt, sched in zip(optimizers, schedulers):
            opt.step()
            sched.step()
        model.zero_grad(set_to_none=True)
with torch.no_grad():
    print(f"accuracy {(model(x[1300:]).argmax(1) == y[1300:]).float().mean():.3f}, lr at the end {schedulers[0].get_last_lr()[0]:.4f}")
