"""Ignite: an update function that compares (N, 1) with (N,)."""
import warnings

import torch
import torch.nn.functional as F
from ignite.engine import Engine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(320, 5)
model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def update(engine, batch):
    model.train()
    optimizer.zero_grad()
    inputs, targets = batch
    loss = F.mse_loss(model(inputs), targets)  # error: broadcast-target
    loss.backward()
    optimizer.step()
    return loss.item()


trainer = Engine(update)
trainer.run(DataLoader(TensorDataset(x, x.pow(2).sum(1)), batch_size=16, shuffle=True), max_epochs=3)
print(f"loss {trainer.state.output:.2f} after {trainer.state.iteration} iterations")
