"""Fraud detection on an imbalanced table: the rare class is repeated with a little noise in the training part."""

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score, recall_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 2024
torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)

X, y = make_classification(
    n_samples=2000,
    n_features=20,
    n_informative=5,
    n_clusters_per_class=3,
    weights=[0.94],
    flip_y=0.02,
    class_sep=1.0,
    random_state=SEED,
)


def oversample(features, target):
    """Repeat the fraud cases until there are as many as honest ones."""
    fraud = np.flatnonzero(target == 1)
    extra = rng.choice(fraud, size=(target == 0).sum() - len(fraud), replace=True)
    jitter = rng.normal(0, 0.05, (len(extra), features.shape[1]))
    return np.vstack([features, features[extra] + jitter]), np.concatenate([target, target[extra]])


X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.3, stratify=y, random_state=SEED)
X_train, y_train = oversample(X_train, y_train)

scaler = StandardScaler()
X_train = scaler.fit_transform(X_train)
X_val = scaler.transform(X_val)

train_loader = DataLoader(
    TensorDataset(torch.tensor(X_train, dtype=torch.float32), torch.tensor(y_train, dtype=torch.float32)),
    batch_size=128,
    shuffle=True,
)
X_val_t = torch.tensor(X_val, dtype=torch.float32)
y_val_t = torch.tensor(y_val, dtype=torch.float32)

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(12):
    model.train()
    train_loss = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(xb)
    model.eval()
    with torch.no_grad():
        logits = model(X_val_t).squeeze(1)
        val_loss = criterion(logits, y_val_t).item()
    probs = torch.sigmoid(logits).numpy()
    print(
        f"epoch {epoch + 1:2d} train {train_loss / len(X_train):.4f} val {val_loss:.4f} AP "
        f"{average_precision_score(y_val, probs):.4f}"
    )

print("recall of fraud:", round(recall_score(y_val, probs > 0.5), 4))
print("average precision:", round(average_precision_score(y_val, probs), 4))
