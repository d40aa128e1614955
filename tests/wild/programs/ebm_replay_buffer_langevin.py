"""Energy-based model on digits: persistent Langevin negatives from a buffer, gradients to the inputs, energies regularised."""
import random

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


class Sampler:
    def __init__(self, model, size=512):
        self.model = model
        self.examples = [torch.rand(1, 64) for _ in range(size)]

    def negatives(self, n, steps):
        fresh = sum(random.random() < 0.05 for _ in range(n))
        start = torch.cat([torch.rand(fresh, 64), *random.choices(self.examples, k=n - fresh)])
        moved = self.langevin(start, steps)
        self.examples = [*moved.split(1), *self.examples][:512]
        return moved

    def langevin(self, x, steps, step_size=0.02):
        training = self.model.training
        self.model.eval()
        for p in self.model.parameters():
            p.requires_grad = False
        x = x.detach().clone().requires_grad_(True)
        for _ in range(steps):
            x.data.add_(0.01 * torch.randn_like(x)).clamp_(0, 1)
            energy = self.model(x)
            energy.sum().backward()
            x.grad.data.clamp_(-0.5, 0.5)
            x.data.add_(-step_size * x.grad.data)
            x.grad.zero_()
            x.data.clamp_(0, 1)
        for p in self.model.parameters():
            p.requires_grad = True
        self.model.train(training)
        return x.detach()


random.seed(0)
torch.manual_seed(0)
digits = torch.tensor(load_digits().data[:512], dtype=torch.float32) / 16
loader = DataLoader(TensorDataset(digits), batch_size=64, shuffle=True, drop_last=True)
model = Energy()
sampler = Sampler(model)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.0, 0.999))
for epoch in range(6):
    for (real,) in loader:
        real = (real + 0.005 * torch.randn_like(real)).clamp(0, 1)
        fake = sampler.negatives(len(real), steps=8)
        real_energy, fake_energy = model(torch.cat([real, fake])).chunk(2)
        divergence = real_energy.mean() - fake_energy.mean()
        regulariser = 0.1 * (real_energy ** 2 + fake_energy ** 2).mean()
        optimizer.zero_grad()
        (divergence + regulariser).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
    print(f"epoch {epoch} divergence {divergence.item():.4f}")
model.eval()
with torch.no_grad():
    print(f"energy of digits {model(digits).mean():.3f}, of noise {model(torch.rand(200, 64)).mean():.3f}")
