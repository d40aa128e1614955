"""Windows of one series, each one step after the one before, are split at random, with the next step as the target."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def series(steps):
    values = torch.zeros(steps)
    for step in range(1, steps):
        values[step] = 0.9 * values[step - 1] + torch.randn(())
    return values


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(1, 12, batch_first=True)
        self.head = nn.Linear(12, 1)

    def forward(self, x):
        return self.head(self.cell(x)[0][:, -1]).squeeze(1)


torch.manual_seed(2)
cut = series(1000).unfold(0, 13, 1)
x, y = cut[:, :12].unsqueeze(-1).clone(), cut[:, 12].clone()
order = torch.randperm(len(x))
x_train, y_train = x[order[:750]], y[order[:750]]
x_test, y_test = x[order[750:]], y[order[750:]]  # error: train-validation-overlap
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(4):
    model.train()
    for inputs, targets in DataLoader(TensorDataset(x_train, y_train), batch_size=50, shuffle=True):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, nn.functional.mse_loss(model(x_test), y_test).item())
