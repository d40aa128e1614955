"""The condition of the accumulation can never be true."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(120, 5), torch.randn(120, 1)), batch_size=12, shuffle=True)
model = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1))
optimizer = torch.optim.Adam(model.parameters())
every = 16  # more than there are batches
for epoch in range(4):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(model(x), y) / every
        loss.backward()  # error: backward-without-step
        if (i + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item() * every)
