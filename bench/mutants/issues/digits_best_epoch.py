"""Digits: small MLP, keep the epoch with the lowest validation loss and test it."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)

X, y = load_digits(return_X_y=True)
X_tmp, X_test, y_tmp, y_test = train_test_split(X, y, test_size=600, random_state=0, stratify=y)
X_train, X_val, y_train, y_val = train_test_split(
    X_tmp, y_tmp, train_size=250, random_state=0, stratify=y_tmp
)


def as_dataset(features, labels):
    images = torch.tensor(features / 16.0, dtype=torch.float32)
    return TensorDataset(images, torch.tensor(labels))


train_loader = DataLoader(as_dataset(X_train, y_train), batch_size=25, shuffle=True)
val_loader = DataLoader(as_dataset(X_val, y_val), batch_size=256)
test_loader = DataLoader(as_dataset(X_test, y_test), batch_size=256)

model = nn.Sequential(
    nn.Linear(64, 128), nn.ReLU(),
    nn.Linear(128, 128), nn.ReLU(),
    nn.Linear(128, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


@torch.no_grad()
def evaluate(loader):
    model.eval()
    total_loss, correct, count = 0.0, 0, 0
    for xb, yb in loader:
        logits = model(xb)
        total_loss += F.cross_entropy(logits, yb, reduction="sum").item()
        correct += (logits.argmax(1) == yb).sum().item()
        count += len(yb)
    return total_loss / count, correct / count


best_loss = float("inf")
best_epoch = -1
best_model_wts = None

for epoch in range(24):
    model.train()
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()

    val_loss, val_acc = evaluate(val_loader)
    if val_loss < best_loss:
        best_loss = val_loss
        best_epoch = epoch
        best_model_wts = copy.deepcopy(model.state_dict())
    print(f"epoch {epoch:02d}  val loss {val_loss:.4f}  val acc {val_acc:.4f}")

model.load_state_dict(best_model_wts)
test_loss, test_acc = evaluate(test_loader)
print(f"best epoch {best_epoch} (val loss {best_loss:.4f})")
print(f"test loss {test_loss:.4f}  test acc {test_acc:.4f}")
