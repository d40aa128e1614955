import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

torch.manual_seed(13)
np.random.seed(13)

X, y = make_classification(n_samples=1400, n_features=40, n_informative=8, n_redundant=4,
                           n_classes=3, flip_y=0.12, class_sep=1.0, random_state=13)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.5, stratify=y, random_state=13)
scaler = StandardScaler().fit(X_train)
X_train = torch.tensor(scaler.transform(X_train), dtype=torch.float32)
X_val = torch.tensor(scaler.transform(X_val), dtype=torch.float32)
y_train, y_val = torch.tensor(y_train), torch.tensor(y_val)


class TabularNet(nn.Module):
    def __init__(self, n_in, n_out, width=128, p=0.5):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_in, width), nn.ReLU(), nn.Dropout(p),
            nn.Linear(width, width), nn.ReLU(), nn.Dropout(p),
            nn.Linear(width, n_out),
        )

    def forward(self, x):
        return self.net(x)


def batches(x, t, size):
    order = torch.randperm(len(x))
    for i in range(0, len(x), size):
        idx = order[i:i + size]
        yield x[idx], t[idx]


def evaluate(model, x, t, criterion):
    model.eval()
    with torch.no_grad():
        out = model(x)
    return criterion(out, t).item(), (out.argmax(1) == t).float().mean().item()


model = TabularNet(40, 3)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(1, 21):
    model.train()
    running = 0.0
    for xb, yb in batches(X_train, y_train, 64):
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(xb)
    val_loss, val_acc = evaluate(model, X_val, y_val, criterion)
    if epoch % 5 == 0:
        print(f"epoch {epoch:2d}  train loss {running / len(X_train):.4f}  val loss {val_loss:.4f}  val acc {val_acc:.4f}")
