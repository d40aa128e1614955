"""A validation collects its results in several ways, and shows its last batch besides."""
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

outputs = []
for _ in range(4):
    model.train()
    for data, target in train:
        loss = criterion(model(data), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for index, (data, target) in enumerate(valid):
            logits = model(data)
            outputs.append((logits, target))
            last_loss = criterion(logits, target)
    print(f"loss of the last batch {last_loss.item():.3f}")
    logits, targets = (torch.cat(parts) for parts in zip(*outputs, strict=True))
    print(f"accuracy {(logits.argmax(1) == targets).float().mean().item():.3f}")
    outputs.clear()
