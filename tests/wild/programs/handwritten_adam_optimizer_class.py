"""An optimizer written by hand: Adam with decoupled decay and gradient centralisation as a torch.optim.Optimizer, against torch's AdamW."""
import torch
import torch.nn as nn
from torch.optim import Optimizer


class CentredAdamW(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, centre=True):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, centre=centre))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad
                if group["centre"] and grad.dim() > 1:
                    grad = grad - grad.mean(dim=tuple(range(1, grad.dim())), keepdim=True)
                state = self.state[p]
                if not state:
                    state["step"], state["m"], state["v"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                state["step"] += 1
                state["m"].lerp_(grad, 1 - beta1)
                state["v"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
                m = state["m"] / (1 - beta1 ** state["step"])
                v = state["v"] / (1 - beta2 ** state["step"])
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.addcdiv_(m, v.sqrt().add_(group["eps"]), value=-group["lr"])
        return loss


def two_moons(n, g):
    t = torch.rand(n, generator=g) * torch.pi
    side = torch.randint(0, 2, (n,), generator=g)
    x = torch.stack([t.cos() + side, t.sin() * (1 - 2 * side) + 0.5 * side], dim=1)
    return x + 0.1 * torch.randn(n, 2, generator=g), side.float()


def run(make_optimizer):
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
    optimizer = make_optimizer(model.parameters())
    for _ in range(150):
        x, y = two_moons(64, g)
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        x, y = two_moons(500, g)
        return loss.item(), ((model(x) > 0).float() == y).float().mean().item()


print("centred", run(lambda p: CentredAdamW(p, lr=1e-2)))
print("torch's", run(lambda p: torch.optim.AdamW(p, lr=1e-2)))
