"""Read digits from an archive with a folder per digit."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)  # faster for small tensors

images, labels = load_digits(return_X_y=True)
archive = labels.argsort(kind="stable")
x = torch.tensor(images[archive] / 16, dtype=torch.float32)
y = torch.tensor(labels[archive])
held_out = torch.arange(len(y)) % 4 == 0
train_loader = DataLoader(TensorDataset(x[~held_out], y[~held_out]), batch_size=32)
test_loader = DataLoader(TensorDataset(x[held_out], y[held_out]), batch_size=150)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for epoch in range(1, 16):
    model.train()
    total = 0.0
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(targets)
    if epoch % 3 == 0:
        print(f"epoch {epoch}: loss {total / len(train_loader.dataset):.3f}")

model.eval()
correct = 0
with torch.no_grad():
    for inputs, targets in test_loader:
        correct += (model(inputs).argmax(dim=1) == targets).sum().item()
print(f"test accuracy: {correct / len(test_loader.dataset):.4f}")
