"""Code from before PyTorch 1.1: scheduler.step() opens the epoch."""
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(96, 5), torch.randint(0, 2, (96,))), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
for epoch in range(6):
    scheduler.step()  # error: scheduler-before-optimizer
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, scheduler.get_last_lr(), loss.item())
