"""Breast-cancer classifier with dropout; the model is picked by validation loss."""
import copy

import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class TumourNet(nn.Module):
    def __init__(self, n_features, hidden=64, p_drop=0.5):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_features, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(p_drop),
            nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(p_drop),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(1)


def load(seed=0):
    X, y = load_breast_cancer(return_X_y=True)
    X_tr, X_rest, y_tr, y_rest = train_test_split(X, y, train_size=256, random_state=seed, stratify=y)
    X_va, X_te, y_va, y_te = train_test_split(
        X_rest, y_rest, test_size=0.5, random_state=seed, stratify=y_rest
    )
    mean, std = X_tr.mean(0), X_tr.std(0)
    pack = lambda a, b: TensorDataset(
        torch.tensor((a - mean) / std, dtype=torch.float32), torch.tensor(b, dtype=torch.float32)
    )
    return pack(X_tr, y_tr), pack(X_va, y_va), pack(X_te, y_te)


def evaluate(model, loader):
    model.eval()
    loss, hits, n = 0.0, 0, 0
    with torch.no_grad():
        for xb, yb in loader:
            logit = model(xb)
            loss += F.binary_cross_entropy_with_logits(logit, yb, reduction="sum").item()
            hits += ((logit > 0).float() == yb).sum().item()
            n += len(yb)
    return loss / n, hits / n


def main():
    torch.manual_seed(4)
    train_set, val_set, test_set = load()
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=16)
    test_loader = DataLoader(test_set, batch_size=16)

    model = TumourNet(n_features=30)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    best_loss, best_state = float("inf"), None

    for epoch in range(30):
        model.train()
        for xb, yb in train_loader:
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(model(xb), yb)
            loss.backward()
            optimizer.step()
        val_loss, val_acc = evaluate(model, val_loader)
        if val_loss < best_loss:
            best_loss, best_state = val_loss, copy.deepcopy(model.state_dict())
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1:2d}  val loss {val_loss:.4f}  val acc {val_acc:.4f}")

    model.load_state_dict(best_state)
    test_loss, test_acc = evaluate(model, test_loader)
    print(f"best val loss {best_loss:.4f}")
    print(f"test loss {test_loss:.4f}  test acc {test_acc:.4f}")


if __name__ == "__main__":
    main()
