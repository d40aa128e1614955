"""An early stopping class that saves through a method, for the largest validation loss."""

import io

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(240, 8)
y = x @ torch.randn(8, 1) + 0.5 * torch.randn(240, 1)
train, held = slice(0, 160), slice(160, 240)


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.waited = patience, 0
        self.best_loss = None
        self.file = io.BytesIO()

    def update(self, val_loss, model):
        if self.best_loss is None or val_loss > self.best_loss:  # error: worst-weights-kept
            self.best_loss = val_loss
            self.waited = 0
            self.save(model)
        else:
            self.waited += 1
        return self.waited >= self.patience

    def save(self, model):
        self.file.seek(0)
        torch.save({"model": model.state_dict()}, self.file)


def validate(model, criterion):
    model.eval()
    with torch.no_grad():
        return criterion(model(x[held]), y[held]).item()


model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
stopping = EarlyStopping(patience=12)
for epoch in range(40):
    model.train()
    for rows in torch.randperm(160).split(32):
        optimizer.zero_grad()
        criterion(model(x[train][rows]), y[train][rows]).backward()
        optimizer.step()
    val_loss = validate(model, criterion)
    if stopping.update(val_loss, model):
        break
stopping.file.seek(0)
model.load_state_dict(torch.load(stopping.file)["model"])
print("final", validate(model, criterion))
