"""ReduceLROnPlateau stepped per batch with the loss of that batch, in a trainer."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Runner:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-2)
        self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(self.opt, factor=0.5, patience=10)

    def step(self, x, y):
        self.opt.zero_grad()
        loss = nn.functional.mse_loss(self.net(x), y)
        loss.backward()
        self.opt.step()
        self.plateau.step(loss)  # error: plateau-without-metric
        return loss.detach()


runner = Runner()
loader = DataLoader(TensorDataset(torch.randn(160, 4), torch.randn(160, 1)), batch_size=16, shuffle=True)
for epoch in range(4):
    print(epoch, torch.stack([runner.step(x, y) for x, y in loader]).mean().item())
