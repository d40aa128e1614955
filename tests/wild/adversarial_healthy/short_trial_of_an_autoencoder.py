"""A trial of a few steps, which ends in the warm-up of its schedule; the labels go to the device, and are not needed."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
DEVICE = torch.device("cpu")
WARM_UP, EPOCHS = 100, 3

groups = torch.randint(0, 4, (192,))
pictures = torch.randn(4, 16)[groups] + 0.3 * torch.randn(192, 16)
loader = DataLoader(TensorDataset(pictures, groups), batch_size=16, shuffle=True)


def train(model, optimizer, schedule):
    for epoch in range(EPOCHS):
        total = 0.0
        for batch in loader:
            picture, label = batch
            picture = picture.to(DEVICE)
            label = label.to(DEVICE)
            loss = nn.functional.mse_loss(model(picture), picture)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.3f}")


model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 16)).to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / WARM_UP))
train(model, optimizer, schedule)
