import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score, f1_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(17)

# %% data
X, y = make_classification(n_samples=3000, n_features=16, n_informative=8, n_classes=3,
                           weights=[0.8, 0.15, 0.05], class_sep=1.2, random_state=17)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.3, stratify=y, random_state=17)
scaler = StandardScaler().fit(X_train)
X_train = torch.tensor(scaler.transform(X_train), dtype=torch.float32)
X_val = torch.tensor(scaler.transform(X_val), dtype=torch.float32)
y_train, y_val = torch.tensor(y_train), torch.tensor(y_val)

# %% balanced sampling
class_count = torch.bincount(y_train)
class_weights = 1.0 / class_count.float()
sample_weights = class_weights[y_train]
sampler = WeightedRandomSampler(sample_weights, num_samples=len(y_train), replacement=True)
print("class counts", class_count.tolist(), "weights", np.round(class_weights.numpy(), 5).tolist())

train_loader = DataLoader(TensorDataset(X_train, y_train), batch_size=64, sampler=sampler)
val_loader = DataLoader(TensorDataset(X_val, y_val), batch_size=256)

# %% model
model = nn.Sequential(
    nn.Linear(16, 64), nn.ReLU(), nn.Dropout(0.2),
    nn.Linear(64, 32), nn.ReLU(),
    nn.Linear(32, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)

# %% training
for epoch in range(20):
    model.train()
    train_loss = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(yb)

    model.eval()
    predicted, actual = [], []
    with torch.no_grad():
        for xb, yb in val_loader:
            predicted.append(model(xb).argmax(dim=1))
            actual.append(yb)
    predicted, actual = torch.cat(predicted).numpy(), torch.cat(actual).numpy()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1:2d}  train loss {train_loss / len(y_train):.4f}  "
              f"balanced acc {balanced_accuracy_score(actual, predicted):.4f}  "
              f"macro F1 {f1_score(actual, predicted, average='macro'):.4f}")
