"""State restored in mid-run: rolled back to the best epoch, model, optimizer and schedule alike."""
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train = DataLoader(TensorDataset(torch.randn(120, 4), torch.randn(120, 1)), batch_size=12, shuffle=True)
val = DataLoader(TensorDataset(torch.randn(40, 4), torch.randn(40, 1)), batch_size=40)
model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
best, state = float("inf"), None
for epoch in range(8):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        value = sum(nn.functional.mse_loss(model(x), y).item() for x, y in val)
    if value < best:
        best = value
        state = copy.deepcopy((model.state_dict(), optimizer.state_dict(), scheduler.state_dict()))
    elif epoch % 3 == 2:
        model.load_state_dict(state[0])
        optimizer.load_state_dict(state[1])
        scheduler.load_state_dict(state[2])
