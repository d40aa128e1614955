"""From "PyTorch Training", section Gradient Accumulation.

Repaired: lost indentation; data (1000 samples), model and optimizer filled in; the loader is the one of the section
on data loading, without workers (batch 64, last batch dropped: 15 batches). Expected: 15 batches make three windows of
four and an open one of three: their gradients never reach a step.
"""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)

device = torch.device('cpu')
X = torch.randn(1000, 4)
y = (X[:, 0] > X[:, 1]).long()
train_loader = DataLoader(TensorDataset(X, y), batch_size=64, shuffle=True, drop_last=True)
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

accum_steps = 4  # effective batch = 64 * 4 = 256
optimizer.zero_grad()
for step, (inputs, targets) in enumerate(train_loader):
    inputs, targets = inputs.to(device), targets.to(device)
    outputs = model(inputs)
    loss = criterion(outputs, targets) / accum_steps  # normalize
    loss.backward()  # silent: the only epoch ends the run, so nothing is cleared or mixed
    if (step + 1) % accum_steps == 0:
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        optimizer.zero_grad()
print("gradients left over:", any(p.grad is not None for p in model.parameters()))
