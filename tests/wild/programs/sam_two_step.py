"""Healthy: sharpness-aware minimisation with first_step/second_step: two backwards and one update per batch."""
import torch
import torch.nn as nn


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        assert rho >= 0.0, f"Invalid rho, should be non-negative: {rho}"
        defaults = dict(rho=rho, **kwargs)
        super().__init__(params, defaults)
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups
        self.defaults.update(self.base_optimizer.defaults)

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        grad_norm = self._grad_norm()
        for group in self.param_groups:
            scale = group["rho"] / (grad_norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                p.add_(p.grad * scale.to(p))  # climb to the local maximum "w + e(w)"
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data = self.state[p]["old_p"]  # get back to "w" from "w + e(w)"
        self.base_optimizer.step()  # do the actual "sharpness-aware" update
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        closure = torch.enable_grad()(closure)
        self.first_step(zero_grad=True)
        closure()
        self.second_step()

    def _grad_norm(self):
        return torch.norm(torch.stack([p.grad.norm(p=2) for group in self.param_groups for p in group["params"] if p.grad is not None]), p=2)


def spirals(n):
    y = torch.randint(0, 2, (n,))
    t = 0.3 + 2.7 * torch.rand(n)
    ang = 2.2 * t + torch.pi * y
    return torch.stack([t * ang.cos(), t * ang.sin()], 1) / 1.5 + 0.05 * torch.randn(n, 2), y


torch.manual_seed(0)
torch.set_num_threads(1)
x_tr, y_tr = spirals(512)
x_te, y_te = spirals(256)
model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
criterion = nn.CrossEntropyLoss()
optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.05, lr=0.1, momentum=0.9)

for epoch in range(15):
    for idx in torch.randperm(512).split(64):
        # first forward-backward pass
        loss = criterion(model(x_tr[idx]), y_tr[idx])
        loss.backward()
        optimizer.first_step(zero_grad=True)

        # second forward-backward pass
        criterion(model(x_tr[idx]), y_tr[idx]).backward()
        optimizer.second_step(zero_grad=True)

model.eval()
with torch.no_grad():
    acc = (model(x_te).argmax(1) == y_te).float().mean().item()
print(f"train loss {loss.item():.4f}, test accuracy {acc:.4f}")
