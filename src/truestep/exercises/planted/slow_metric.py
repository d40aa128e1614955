"""Read digits, and test the network after each epoch."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)  # faster for small tensors

images, labels = load_digits(return_X_y=True)
parts = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
x_train, x_test, y_train, y_test = (torch.as_tensor(part) for part in parts)
train_loader = DataLoader(TensorDataset(x_train.float(), y_train), batch_size=64, shuffle=True)
test_loader = DataLoader(TensorDataset(x_test.float(), y_test), batch_size=100)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

correct = total = 0
for epoch in range(1, 13):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, y in test_loader:
            correct += (model(x).argmax(dim=1) == y).sum().item()
            total += len(y)
    accuracy = correct / total
    print(f"epoch {epoch}: accuracy {accuracy:.3f}")

print(f"test accuracy: {accuracy:.4f}")
