"""Accuracies as a percentage, as an error, as a mean over batches, smoothed, of two models, and the best so far."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
x = torch.randn(600, 10)
y = (x[:, :4] + 0.3 * torch.randn(600, 4)).argmax(1)
train = DataLoader(TensorDataset(x[:450], y[:450]), batch_size=30, shuffle=True)
test = DataLoader(TensorDataset(x[450:], y[450:]), batch_size=64)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
best_accuracy, smooth_acc, seen, kept = 0.0, 0.0, 0, 0
for epoch in range(6):
    hits = 0
    for inputs, labels in train:
        scores = model(inputs)
        loss = F.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits += (scores.argmax(1) == labels).sum().item()
    train_acc = hits / len(train.dataset)
    shares, right, count = [], 0, 0
    with torch.no_grad():
        for inputs, labels in test:
            equal = model(inputs).argmax(1) == labels
            shares.append(equal.float().mean().item())
            right += equal.sum().item()
            count += len(labels)
    accuracy = right / count
    error_rate = 1 - accuracy
    mean_acc = sum(shares) / len(shares)
    smooth_acc = 0.9 * smooth_acc + 0.1 * accuracy
    best_accuracy = max(best_accuracy, accuracy)
    seen, kept = seen + count, kept + right
    print(f"{epoch}: train {train_acc:.3f} test {100 * right / count:.1f} % mean {mean_acc:.3f} error {error_rate:.3f}")
    print(f"smooth {smooth_acc:.3f}, best {best_accuracy:.3f}, right per pass {kept / (epoch + 1):.1f}")
