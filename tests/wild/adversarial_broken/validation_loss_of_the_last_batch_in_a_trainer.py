"""A trainer returns the loss of the last batch as the loss of its validation."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(700, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
train = DataLoader(TensorDataset(x[:500], y[:500]), 50, shuffle=True)
valid = DataLoader(TensorDataset(x[500:], y[500:]), 40)
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer, criterion = torch.optim.Adam(model.parameters(), lr=1e-2), nn.CrossEntropyLoss()


class Trainer:
    def __init__(self, model):
        self.model = model

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        for data, target in valid:
            val_loss = criterion(self.model(data), target)  # error: sum-overwritten
        return float(val_loss)

    def fit(self):
        for _ in range(4):
            self.model.train()
            for data, target in train:
                loss = criterion(self.model(data), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f"{self.validate():.3f}")


Trainer(model).fit()
