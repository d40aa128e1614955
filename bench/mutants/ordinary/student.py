import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(42)

# data
digits = load_digits()
X = digits.images.astype("float32")
y = digits.target

X_rest, X_test, y_rest, y_test = train_test_split(X, y, test_size=0.2, random_state=42, stratify=y)
X_train, X_val, y_train, y_val = train_test_split(X_rest, y_rest, test_size=0.2, random_state=42, stratify=y_rest)

mean = X_train.mean()
std = X_train.std()
X_train = (X_train - mean) / std
X_val = (X_val - mean) / std
X_test = (X_test - mean) / std

train_set = TensorDataset(torch.tensor(X_train).unsqueeze(1), torch.tensor(y_train))
val_set = TensorDataset(torch.tensor(X_val).unsqueeze(1), torch.tensor(y_val))
test_set = TensorDataset(torch.tensor(X_test).unsqueeze(1), torch.tensor(y_test))

train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=64)
test_loader = DataLoader(test_set, batch_size=64)


# model
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(32)
        self.pool = nn.MaxPool2d(2)
        self.dropout = nn.Dropout(0.3)
        self.fc1 = nn.Linear(32 * 2 * 2, 64)
        self.fc2 = nn.Linear(64, 10)
        self.relu = nn.ReLU()

    def forward(self, x):
        x = self.pool(self.relu(self.bn1(self.conv1(x))))
        x = self.pool(self.relu(self.bn2(self.conv2(x))))
        x = torch.flatten(x, 1)
        x = self.dropout(self.relu(self.fc1(x)))
        return self.fc2(x)


net = Net()
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(net.parameters(), lr=0.002)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.3)

# training
num_epochs = 8
for epoch in range(num_epochs):
    net.train()
    running_loss = 0.0
    correct = 0
    total = 0
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()

        running_loss += loss.item() * inputs.size(0)
        _, predicted = torch.max(outputs, 1)
        correct += (predicted == labels).sum().item()
        total += labels.size(0)
    train_loss = running_loss / total
    train_acc = correct / total
    scheduler.step()

    net.eval()
    val_loss = 0.0
    val_correct = 0
    val_total = 0
    with torch.no_grad():
        for inputs, labels in val_loader:
            outputs = net(inputs)
            val_loss += criterion(outputs, labels).item() * inputs.size(0)
            _, predicted = torch.max(outputs, 1)
            val_correct += (predicted == labels).sum().item()
            val_total += labels.size(0)
    print(
        f"Epoch {epoch + 1}/{num_epochs} "
        f"train loss {train_loss:.4f} acc {train_acc:.4f} "
        f"val loss {val_loss / val_total:.4f} acc {val_correct / val_total:.4f}"
    )

# test
net.eval()
confusion = np.zeros((10, 10), dtype=int)
with torch.no_grad():
    for inputs, labels in test_loader:
        predicted = net(inputs).argmax(dim=1)
        for t, p in zip(labels.tolist(), predicted.tolist()):
            confusion[t, p] += 1

accuracy = np.trace(confusion) / confusion.sum()
recall = np.diag(confusion) / confusion.sum(axis=1)
precision = np.diag(confusion) / np.maximum(confusion.sum(axis=0), 1)
print(f"Test accuracy: {accuracy:.4f}")
for digit in range(10):
    print(f"  digit {digit}: recall {recall[digit]:.3f} precision {precision[digit]:.3f}")
