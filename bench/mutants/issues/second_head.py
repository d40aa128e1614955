"""Add a second head to a trained digit network; the backbone stays as it is."""
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(31)


def loader(images, labels, shuffle=False):
    return DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=shuffle)


def accuracy(backbone, head, data):
    backbone.eval()
    head.eval()
    correct = 0
    with torch.no_grad():
        for x, y in data:
            correct += (head(backbone(x)).argmax(1) == y).sum().item()
    return correct / len(data.dataset)


digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
labels = torch.tensor(digits.target)
train_idx, val_idx = train_test_split(torch.arange(len(labels)).numpy(), test_size=0.3,
                                      stratify=digits.target, random_state=31)

# task A: plain digits
train_a = loader(images[train_idx], labels[train_idx], shuffle=True)
val_a = loader(images[val_idx], labels[val_idx])
# task B: bright background, odd or even
train_b = loader(0.6 + 0.8 * images[train_idx], labels[train_idx] % 2, shuffle=True)
val_b = loader(0.6 + 0.8 * images[val_idx], labels[val_idx] % 2)

backbone = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten())
digit_head = nn.Linear(128, 10)
parity_head = nn.Sequential(nn.Linear(128, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
criterion = nn.CrossEntropyLoss()

optimizer = torch.optim.Adam([*backbone.parameters(), *digit_head.parameters()], lr=2e-3)
for epoch in range(6):
    backbone.train()
    digit_head.train()
    for x, y in train_a:
        optimizer.zero_grad()
        loss = criterion(digit_head(backbone(x)), y)
        loss.backward()
        optimizer.step()
    print(f"[digits] epoch {epoch + 1}  val acc {accuracy(backbone, digit_head, val_a):.4f}")

for p in backbone.parameters():
    p.requires_grad_(False)

optimizer = torch.optim.Adam(parity_head.parameters(), lr=2e-3)
for epoch in range(8):
    backbone.eval()
    parity_head.train()
    for x, y in train_b:
        optimizer.zero_grad()
        loss = criterion(parity_head(backbone(x)), y)
        loss.backward()
        optimizer.step()
    print(f"[parity] epoch {epoch + 1}  loss {loss.item():.4f}  "
          f"val acc {accuracy(backbone, parity_head, val_b):.4f}")

print(f"final: digits {accuracy(backbone, digit_head, val_a):.4f}  "
      f"parity {accuracy(backbone, parity_head, val_b):.4f}")
