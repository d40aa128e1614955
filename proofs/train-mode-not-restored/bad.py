"""Learn from few, partly wrong labels, with dropout against memorising them."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(2400, 20)
y = (x @ torch.randn(20) > 0).long()
wrong = torch.rand(2400) < 0.3
train_set = TensorDataset(x[:400], torch.where(wrong, 1 - y, y)[:400])
loader = DataLoader(train_set, batch_size=40, shuffle=True)
val_loader = DataLoader(TensorDataset(x[400:], y[400:]), batch_size=500)

model = nn.Sequential(nn.Linear(20, 256), nn.ReLU(), nn.Dropout(0.7))
model.extend([nn.Linear(256, 256), nn.ReLU(), nn.Dropout(0.7), nn.Linear(256, 2)])
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
model.train()
for epoch in range(12):
    for inputs, labels in loader:
        optimizer.zero_grad()
        outputs = model(inputs)  # error: train-mode-not-restored
        criterion(outputs, labels).backward()
        optimizer.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for inputs, labels in val_loader:
            correct += (model(inputs).argmax(1) == labels).sum().item()
    accuracy = correct / 2000
    print(f"epoch {epoch}: {accuracy:.4f}")
print(f"result: {accuracy:.4f}")
