"""evaluate() sets eval mode and stops there."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train = DataLoader(TensorDataset(torch.randn(96, 7), torch.randn(96)), batch_size=16, shuffle=True)
val = DataLoader(TensorDataset(torch.randn(48, 7), torch.randn(48)), batch_size=16)
model = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))
opt = torch.optim.Adam(model.parameters())


def evaluate(model, loader):
    model.eval()
    total = 0.0
    for x, y in loader:
        prediction = model(x).squeeze(-1)  # error: no-grad-missing
        total += nn.functional.mse_loss(prediction, y).item()
    model.train()
    return total / len(loader)


for epoch in range(3):
    for x, y in train:
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(x).squeeze(-1), y)
        loss.backward()
        opt.step()
    print(epoch, evaluate(model, val))
