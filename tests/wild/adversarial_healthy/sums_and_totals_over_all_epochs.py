"""Sums over all epochs are divided by totals over all epochs; losses of last batches are shown while training."""
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

seen, right, total_loss, steps = 0, 0, 0.0, 0
for epoch in range(4):
    model.train()
    for data, target in train:
        logits = model(data)
        loss = criterion(logits, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (logits.argmax(1) == target).sum().item()
        seen += len(target)
        total_loss += loss.item()
    print(f"loss of the last batch {loss.item():.3f}, accuracy so far {right / seen:.3f}")
    print(f"mean loss so far {total_loss / (len(train) * (epoch + 1)):.3f}")
    steps += len(train)
    print(f"and by steps {total_loss / steps:.3f}")
model.eval()
with torch.no_grad():
    for data, target in valid:
        example = model(data).softmax(1)
print(f"some results: {example[:2].tolist()}")
