"""Stochastic gradient Langevin dynamics by hand; an optimizer object is there only for zero_grad."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(200, 3)
loader = DataLoader(TensorDataset(x, x @ torch.tensor([1.0, -2.0, 0.5])), batch_size=20, shuffle=True)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
eps, samples = 1e-2, []

for epoch in range(4):
    for xb, yb in loader:
        optimizer.zero_grad()
        nll = 0.5 * ((model(xb).squeeze(1) - yb) ** 2).mean()
        nll.backward()
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-eps)
            p.data.add_(torch.randn_like(p), alpha=(2 * eps) ** 0.5 * 1e-2)
        samples.append(model.weight.detach().clone())
print(torch.stack(samples[20:]).mean(0))
