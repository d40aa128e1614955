"""Early stopping on validation; the best weights are cloned and used for the one test evaluation."""
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer


@dataclass
class Net:
    w1: torch.Tensor
    b1: torch.Tensor
    w2: torch.Tensor
    b2: torch.Tensor

    @classmethod
    def create(cls, d, h, g):
        return cls(*(t.requires_grad_() for t in (
            torch.randn(d, h, generator=g) / d ** 0.5, torch.zeros(h), torch.randn(h, generator=g) / h ** 0.5, torch.zeros(()))))

    def __call__(self, x):
        return torch.relu(x @ self.w1 + self.b1) @ self.w2 + self.b2

    def tensors(self):
        return [self.w1, self.b1, self.w2, self.b2]


@dataclass
class EarlyStopping:
    patience: int = 8
    best: float = float('inf')
    wait: int = 0
    saved: list = field(default_factory=list)

    def update(self, value, net):
        if value < self.best - 1e-4:
            self.best, self.wait = value, 0
            self.saved = [t.detach().clone() for t in net.tensors()]
        else:
            self.wait += 1
        return self.wait >= self.patience


g = torch.Generator().manual_seed(12)
raw = load_breast_cancer()
X, y = torch.tensor(raw.data, dtype=torch.float32), torch.tensor(raw.target, dtype=torch.float32)
perm = torch.randperm(len(X), generator=g)
tr, va, te = perm[:300], perm[300:420], perm[420:]
X = (X - X[tr].mean(0)) / X[tr].std(0)

net, stopper = Net.create(30, 64, g), EarlyStopping()
opt = torch.optim.Adam(net.tensors(), lr=4e-3)
for epoch in range(100):
    for rows in tr[torch.randperm(len(tr), generator=g)].split(30):
        loss = F.binary_cross_entropy_with_logits(net(X[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        val = F.binary_cross_entropy_with_logits(net(X[va]), y[va]).item()
    if stopper.update(val, net):
        print(f'stopped after epoch {epoch + 1}, best validation loss {stopper.best:.4f}')
        break

with torch.no_grad():
    for t, s in zip(net.tensors(), stopper.saved):
        t.copy_(s)
    acc = ((net(X[te]) > 0).float() == y[te]).float().mean()
print(f'test accuracy with the best weights {acc.item():.3f}')
