"""A last window that is not full is stepped on after the loop, its gradients scaled to the number of its batches."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(70, 6)
loader = DataLoader(TensorDataset(x, x.mean(dim=1, keepdim=True)), batch_size=10, shuffle=True)
valid = DataLoader(TensorDataset(torch.randn(20, 6)), batch_size=10)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(6):
    optimizer.zero_grad()
    pending = 0
    for inputs, targets in loader:
        (nn.functional.mse_loss(model(inputs), targets) / 4).backward()
        pending += 1
        if pending == 4:
            optimizer.step()
            optimizer.zero_grad()
            pending = 0
    with torch.no_grad():
        scores = [model(inputs).mean().item() for (inputs,) in valid]
    if pending:
        for parameter in model.parameters():
            parameter.grad.mul_(4 / pending)
        optimizer.step()
        optimizer.zero_grad()
