"""Adversarial training: the gradient of the perturbation is limited in norm, the weights are not."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loader = DataLoader(TensorDataset(torch.randn(96, 8), torch.randint(0, 2, (96,))), batch_size=16, shuffle=True)
for epoch in range(3):
    for x, y in loader:
        delta = torch.zeros_like(x, requires_grad=True)
        loss = nn.functional.cross_entropy(model(x + delta), y)
        loss.backward()
        nn.utils.clip_grad_norm_([delta], 0.1)
        perturbed = (x + delta.grad).detach()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(perturbed), y).backward()
        optimizer.step()
