"""Three unbalanced classes, cross entropy with inverse frequency weights."""

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
np.random.seed(3)

X, y = make_classification(
    n_samples=2400,
    n_features=16,
    n_informative=7,
    n_redundant=2,
    n_classes=3,
    weights=[0.82, 0.12, 0.06],
    class_sep=0.9,
    flip_y=0.01,
    random_state=3,
)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.3, stratify=y, random_state=3)
scaler = StandardScaler().fit(X_train)
X_train, X_val = scaler.transform(X_train), scaler.transform(X_val)

train_set = TensorDataset(torch.tensor(X_train, dtype=torch.float32), torch.tensor(y_train))
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
x_val = torch.tensor(X_val, dtype=torch.float32)

counts = torch.bincount(torch.tensor(y_train), minlength=3).float()
class_weights = counts.sum() / (len(counts) * counts)
print("class weights", [round(w, 3) for w in class_weights.tolist()])

model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
criterion = nn.CrossEntropyLoss(weight=class_weights)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(15):
    model.train()
    running = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(xb)
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1:2d} loss {running / len(train_set):.4f}")

model.eval()
with torch.no_grad():
    pred = model(x_val).argmax(1).numpy()
print(f"balanced accuracy {balanced_accuracy_score(y_val, pred):.4f}")
print("recall per class", recall_score(y_val, pred, average=None).round(3).tolist())
