"""From "PyTorch Training", section The Training Loop: the canonical pattern with batches and a schedule.

Repaired: lost indentation (the schedule once an epoch, as its StepLR wants); data, model, optimizer and StepLR
filled in. Expected: nothing.
"""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)

device = torch.device('cpu')
num_epochs = 6
X = torch.randn(320, 4)
y = (X[:, 0] > X[:, 1]).long()
dataloader = DataLoader(TensorDataset(X, y), batch_size=32, shuffle=True)
model = nn.Linear(4, 2).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3)

model.train()  # set training mode
for epoch in range(num_epochs):
    for inputs, targets in dataloader:
        inputs = inputs.to(device)  # move data to GPU
        targets = targets.to(device)
        optimizer.zero_grad()  # clear accumulated gradients
        outputs = model(inputs)  # forward pass (graph is built here)
        loss = criterion(outputs, targets)  # compute loss
        loss.backward()  # backward pass (graph is consumed here)
        optimizer.step()  # update weights
    scheduler.step()  # adjust learning rate
print(f"loss={loss.item():.4f}")
