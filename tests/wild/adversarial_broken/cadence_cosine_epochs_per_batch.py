"""T_max counts epochs, step() runs per batch."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
num_epochs = 6
train_loader = DataLoader(TensorDataset(torch.randn(200, 5), torch.randn(200, 1)), batch_size=10, shuffle=True)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
lr_scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=num_epochs, eta_min=1e-6)


def train_one_epoch():
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        lr_scheduler.step()  # error: scheduler-wrong-cadence
    return loss.item()


for epoch in range(num_epochs):
    print(epoch, train_one_epoch())
