"""Accumulation with its division in the argument of backward()."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
steps = 4
loader = DataLoader(TensorDataset(torch.randn(192, 6), torch.randn(192, 1)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
share = torch.tensor(1.0 / steps)

for epoch in range(3):
    for i, (x, y) in enumerate(loader, 1):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward(gradient=share)
        if i % steps == 0:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    print(f"{epoch}: {loss.item():.4f}")
