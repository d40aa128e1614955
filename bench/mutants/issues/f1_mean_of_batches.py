import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

SEED = 21
torch.manual_seed(SEED)

# %% data: fraud-like table with 6 % positives
X, y = make_classification(n_samples=4000, n_features=16, n_informative=8, weights=[0.94],
                           class_sep=1.2, flip_y=0.01, random_state=SEED)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25, stratify=y, random_state=SEED)
scaler = StandardScaler()
X_train = scaler.fit_transform(X_train)
X_val = scaler.transform(X_val)

train_set = TensorDataset(torch.tensor(X_train, dtype=torch.float32), torch.tensor(y_train, dtype=torch.float32))
val_set = TensorDataset(torch.tensor(X_val, dtype=torch.float32), torch.tensor(y_val, dtype=torch.float32))
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
val_loader = DataLoader(val_set, batch_size=32)

# %% model
model = nn.Sequential(
    nn.Linear(16, 64), nn.ReLU(), nn.Dropout(0.2),
    nn.Linear(64, 32), nn.ReLU(),
    nn.Linear(32, 1),
)
pos_weight = torch.tensor([(y_train == 0).sum() / (y_train == 1).sum()], dtype=torch.float32)
criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight.sqrt())
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


# %% training
def train_one_epoch():
    model.train()
    total = 0.0
    for features, target in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(features).squeeze(1), target)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(target)
    return total / len(train_set)


@torch.no_grad()
def evaluate():
    model.eval()
    val_loss = 0.0
    targets, predictions = [], []
    for features, target in val_loader:
        logits = model(features).squeeze(1)
        val_loss += criterion(logits, target).item() * len(target)
        predictions.append((torch.sigmoid(logits) > 0.5).int().numpy())
        targets.append(target.int().numpy())
    f1 = f1_score(np.concatenate(targets), np.concatenate(predictions), zero_division=0)
    return val_loss / len(val_set), float(f1)


history = []
for epoch in range(1, 9):
    train_loss = train_one_epoch()
    val_loss, val_f1 = evaluate()
    history.append((epoch, val_f1))
    print(f"epoch {epoch}: train loss {train_loss:.4f}  val loss {val_loss:.4f}  val F1 {val_f1:.4f}")

best_epoch, best_f1 = max(history, key=lambda item: item[1])
print(f"best validation F1 {best_f1:.4f} at epoch {best_epoch}")
