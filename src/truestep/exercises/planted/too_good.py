"""Predict whether diabetes gets worse fast, from ten measurements."""

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)  # faster for small tensors

features, progress = load_diabetes(return_X_y=True, scaled=False)
x = torch.tensor(features, dtype=torch.float32)
y = torch.tensor(progress > 140, dtype=torch.long)

# 442 patients are few: each comes four times.
x, y = x.repeat(4, 1), y.repeat(4)

order = torch.randperm(len(x)).tolist()
held_out = len(x) // 4
mean, std = x[order[held_out:]].mean(dim=0), x[order[held_out:]].std(dim=0)
patients = TensorDataset((x - mean) / std, y)
train_loader = DataLoader(Subset(patients, order[held_out:]), batch_size=32, shuffle=True)
test_loader = DataLoader(Subset(patients, order[:held_out]), batch_size=128)

model = nn.Sequential(nn.Linear(10, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(1, 41):
    model.train()
    total = 0.0
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(targets)
    if epoch % 10 == 0:
        print(f"epoch {epoch}: loss {total / len(train_loader.dataset):.3f}")

model.eval()
correct = 0
with torch.no_grad():
    for inputs, targets in test_loader:
        correct += (model(inputs).argmax(dim=1) == targets).sum().item()
print(f"test accuracy: {correct / len(test_loader.dataset):.4f}")
