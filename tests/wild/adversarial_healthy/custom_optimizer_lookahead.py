"""Lookahead around SGD, written as an Optimizer; its slow weights are set under no_grad."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Lookahead(torch.optim.Optimizer):
    def __init__(self, base, k=3, alpha=0.5):
        self.base, self.k, self.alpha, self.count = base, k, alpha, 0
        self.slow = [[p.detach().clone() for p in g["params"]] for g in base.param_groups]
        super().__init__([p for g in base.param_groups for p in g["params"]], {})

    def zero_grad(self, set_to_none=True):
        self.base.zero_grad(set_to_none)

    def step(self, closure=None):
        loss = self.base.step(closure)
        self.count += 1
        if self.count % self.k == 0:
            with torch.no_grad():
                for group, slow in zip(self.base.param_groups, self.slow):
                    for p, s in zip(group["params"], slow):
                        s.lerp_(p, self.alpha)
                        p.copy_(s)
        return loss


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
opt = Lookahead(torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9))
loader = DataLoader(TensorDataset(torch.randn(120, 5), torch.randn(120, 1)), batch_size=12, shuffle=True)
for epoch in range(3):
    for x, y in loader:
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
