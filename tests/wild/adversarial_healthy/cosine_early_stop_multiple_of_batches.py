"""A cosine over 100 planned epochs, stopped early after a dozen; the loader happens to have ten batches."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(320, 4)
Y = (X.sum(1, keepdim=True) > 0).float()
train = DataLoader(TensorDataset(X[:240], Y[:240]), batch_size=24, shuffle=True)
valid = DataLoader(TensorDataset(X[240:], Y[240:]), batch_size=80)
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
bce = nn.BCEWithLogitsLoss()
best, patience = float("inf"), 0

for epoch in range(100):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        bce(model(x), y).backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        value = sum(bce(model(x), y).item() for x, y in valid)
    if value < best - 0.05:
        best, patience = value, 0
    else:
        patience += 1
        if patience >= 4 and epoch >= 11:
            print("stopping at epoch", epoch)
            break
