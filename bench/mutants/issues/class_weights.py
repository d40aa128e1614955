"""Fault detection with inverse-frequency class weights."""
from collections import Counter

import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.metrics import classification_report, f1_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

NAMES = ["bearing", "normal", "rotor"]


def get_class_weights(labels, n_classes):
    counts = Counter(labels.tolist())
    weights = torch.tensor([len(labels) / (n_classes * counts[c]) for c in range(n_classes)])
    return weights.float()


def get_data(seed):
    X, y = make_classification(n_samples=3000, n_features=18, n_informative=9, n_classes=3,
                               n_clusters_per_class=2, weights=[0.06, 0.82, 0.12],
                               class_sep=0.9, flip_y=0.02, random_state=seed)
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(X_train)
    return scaler.transform(X_train), y_train, scaler.transform(X_val), y_val


class FaultNet(nn.Module):
    def __init__(self, n_features, n_classes):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_features, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(48, n_classes))

    def forward(self, x):
        return self.net(x)


def train_epoch(model, loader, criterion, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


@torch.no_grad()
def predict(model, x):
    model.eval()
    return model(x).argmax(dim=1).numpy()


def main():
    torch.manual_seed(10)
    X_train, y_train, X_val, y_val = get_data(10)
    train_set = TensorDataset(torch.tensor(X_train, dtype=torch.float32), torch.tensor(y_train))
    loader = DataLoader(train_set, batch_size=64, shuffle=True)
    x_val = torch.tensor(X_val, dtype=torch.float32)

    weights = get_class_weights(y_train, len(NAMES))
    model = FaultNet(X_train.shape[1], len(NAMES))
    criterion = nn.CrossEntropyLoss(weight=weights)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, 26):
        loss = train_epoch(model, loader, criterion, optimizer)
        if epoch % 5 == 0:
            macro = f1_score(y_val, predict(model, x_val), average="macro", zero_division=0)
            print(f"epoch {epoch:2d}  train loss {loss:.4f}  val macro F1 {macro:.4f}")
    print(classification_report(y_val, predict(model, x_val), target_names=NAMES, digits=3, zero_division=0))


if __name__ == "__main__":
    main()
