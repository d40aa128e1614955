"""A system of parts, called through a method of the wrapper; train() on the wrapper, never eval()."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class System(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.4), nn.Linear(16, 1))

    def training_step(self, batch):
        x, y = batch
        return nn.functional.mse_loss(self.net(x), y)

    def validation_step(self, batch):
        x, y = batch
        return nn.functional.l1_loss(self.net(x), y)  # error: eval-mode-missing


system = System()
optimizer = torch.optim.Adam(system.parameters(), lr=1e-3)
fit = DataLoader(TensorDataset(torch.randn(96, 6), torch.randn(96, 1)), batch_size=16, shuffle=True)
held_out = DataLoader(TensorDataset(torch.randn(48, 6), torch.randn(48, 1)), batch_size=16)
for epoch in range(3):
    system.train()
    for batch in fit:
        loss = system.training_step(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, sum(system.validation_step(b).item() for b in held_out) / len(held_out))
