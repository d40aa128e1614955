"""Validation every few steps inside the epoch; train() is only at the top of the epoch."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train = DataLoader(TensorDataset(torch.randn(160, 5), torch.randint(0, 2, (160,))), batch_size=8, shuffle=True)
val = DataLoader(TensorDataset(torch.randn(40, 5), torch.randint(0, 2, (40,))), batch_size=20)
model = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


def evaluate():
    model.eval()
    with torch.no_grad():
        return sum(nn.functional.cross_entropy(model(x), y).item() for x, y in val) / len(val)


for epoch in range(2):
    model.train()
    for step, (x, y) in enumerate(train):
        out = model(x)  # error: train-mode-not-restored
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 4:
            print(epoch, step, evaluate())
