"""Energies and forces of a system: the forces are computed without a graph, and train nothing."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
pos = torch.randn(256, 6)
e = (pos ** 2).sum(1) * 0.5
f = -pos
model = nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    for p, ee, ff in DataLoader(TensorDataset(pos, e, f), batch_size=32, shuffle=True):
        p = p.requires_grad_(True)
        energy = model(p).squeeze(-1)
        forces = -torch.autograd.grad(energy.sum(), p, retain_graph=True)[0]  # error: term-without-gradient
        energy_loss = nn.functional.mse_loss(energy, ee)
        force_loss = nn.functional.mse_loss(forces, ff)
        loss = energy_loss + 10 * force_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
