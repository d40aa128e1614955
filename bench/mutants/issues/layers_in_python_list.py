"""Residual MLP on the digits data."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(19)


class ResidualMLP(nn.Module):
    def __init__(self, n_in, n_out, width=32, depth=3):
        super().__init__()
        self.stem = nn.Linear(n_in, 12)
        self.hidden = nn.ModuleList([nn.Linear(12 if i == 0 else width, width) for i in range(depth)])
        self.head = nn.Linear(width, n_out)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for i, layer in enumerate(self.hidden):
            out = F.relu(layer(x))
            x = out if i == 0 else x + out
        return self.head(x)


X, y = load_digits(return_X_y=True)
X_train, X_val, y_train, y_val = train_test_split(X / 16.0, y, test_size=0.3, stratify=y, random_state=19)


def make_loader(features, labels, shuffle):
    ds = TensorDataset(torch.tensor(features, dtype=torch.float32), torch.tensor(labels))
    return DataLoader(ds, batch_size=64, shuffle=shuffle)


train_loader = make_loader(X_train, y_train, shuffle=True)
val_loader = make_loader(X_val, y_val, shuffle=False)

model = ResidualMLP(64, 10)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(1, 16):
    model.train()
    train_loss = 0.0
    for xb, yb in train_loader:
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(yb)

    model.eval()
    val_loss, correct = 0.0, 0
    with torch.no_grad():
        for xb, yb in val_loader:
            logits = model(xb)
            val_loss += F.cross_entropy(logits, yb, reduction="sum").item()
            correct += (logits.argmax(1) == yb).sum().item()
    if epoch % 3 == 0:
        print(f"epoch {epoch:2d} train {train_loss / len(X_train):.4f} "
              f"val {val_loss / len(X_val):.4f} acc {correct / len(X_val):.4f}")
