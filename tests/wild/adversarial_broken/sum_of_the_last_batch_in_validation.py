"""The validation loss is that of the last batch, divided by the number of batches, and chooses the best weights."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(700, 5)
y = (x[:, 0] * x[:, 1]).unsqueeze(1)
train = DataLoader(TensorDataset(x[:500], y[:500]), 50, shuffle=True)
valid = DataLoader(TensorDataset(x[500:], y[500:]), 40)


@torch.no_grad()
def validate(model, criterion):
    model.eval()
    val_loss, batches = 0.0, len(valid)
    for data, target in valid:
        output = model(data)
        val_loss = criterion(output, target).item()  # error: sum-overwritten
    val_loss /= batches
    return val_loss


model = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer, criterion = torch.optim.Adam(model.parameters(), lr=1e-2), nn.MSELoss()
best = (float("inf"), None)
for _ in range(5):
    model.train()
    for data, target in train:
        loss = criterion(model(data), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    measured = validate(model, criterion)
    if measured < best[0]:
        best = (measured, copy.deepcopy(model.state_dict()))
model.load_state_dict(best[1])
print(f"best {best[0]:.4f}")
