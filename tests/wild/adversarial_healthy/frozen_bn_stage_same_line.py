"""Batch statistics are frozen on purpose from the second epoch on, by eval() inside the training function."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train_dl = DataLoader(TensorDataset(torch.randn(160, 6), torch.randint(0, 2, (160,))), batch_size=16, shuffle=True)
val_dl = DataLoader(TensorDataset(torch.randn(64, 6), torch.randint(0, 2, (64,))), batch_size=32)
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss()


def train_epoch(freeze_bn):
    if freeze_bn:
        model.eval()  # keep running statistics as they are from now on
    else:
        model.train()
    for x, y in train_dl:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()


@torch.no_grad()
def validate():
    model.eval()
    return sum((model(x).argmax(1) == y).sum().item() for x, y in val_dl) / 64


for epoch in range(4):
    train_epoch(freeze_bn=epoch >= 1)
    print(epoch, validate())
