"""A flat script keeps the weights with the least loss of the training, although it computes that of a validation."""

import torch
from torch import nn

torch.manual_seed(6)
x = torch.randn(300, 20)
y = x[:, 0] + 0.8 * torch.randn(300)
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
best_loss, best = float("inf"), {}
for epoch in range(10):
    total = 0.0
    for rows in torch.randperm(120).split(20):
        loss = nn.functional.mse_loss(net(x[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    train_loss = total / 120
    with torch.no_grad():
        val_loss = nn.functional.mse_loss(net(x[120:200]).squeeze(1), y[120:200]).item()
    if train_loss < best_loss:  # error: chosen-without-validation
        best_loss = train_loss
        best = {name: value.clone() for name, value in net.state_dict().items()}
    print(f"{epoch} train {train_loss:.4f} val {val_loss:.4f}")

net.load_state_dict(best)
with torch.no_grad():
    print(f"test {nn.functional.mse_loss(net(x[200:]).squeeze(1), y[200:]).item():.4f}")
