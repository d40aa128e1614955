"""BatchNorm with track_running_stats=False behaves alike in both modes, so eval() is not called."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def block(i, o):
    return nn.Sequential(nn.Linear(i, o), nn.BatchNorm1d(o, track_running_stats=False), nn.ReLU())


model = nn.Sequential(block(6, 24), block(24, 24), nn.Linear(24, 1))
train = DataLoader(TensorDataset(torch.randn(160, 6), torch.randn(160, 1)), batch_size=32, shuffle=True, drop_last=True)
test = DataLoader(TensorDataset(torch.randn(64, 6), torch.randn(64, 1)), batch_size=32)
optim = torch.optim.Adam(model.parameters())
mse = nn.MSELoss()
for epoch in range(4):
    for a, b in train:
        optim.zero_grad()
        mse(model(a), b).backward()
        optim.step()
    with torch.no_grad():
        print(epoch, sum(mse(model(a), b).item() for a, b in test) / len(test))
