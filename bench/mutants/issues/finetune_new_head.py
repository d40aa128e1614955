"""Pretrain on digits 0-4, then fine-tune the whole network on digits 5-9 with few labels."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(),
        )
        self.fc = nn.Linear(32, n_classes)

    def forward(self, x):
        return self.fc(self.body(x))


def split(x, y, n_train, seed):
    x_tr, x_va, y_tr, y_va = train_test_split(x, y, train_size=n_train, random_state=seed, stratify=y)
    to_set = lambda a, b: TensorDataset(torch.tensor(a, dtype=torch.float32), torch.tensor(b))
    return to_set(x_tr, y_tr), to_set(x_va, y_va)


def train(model, optimizer, train_set, val_set, epochs, tag):
    loader = DataLoader(train_set, batch_size=16, shuffle=True)
    for epoch in range(1, epochs + 1):
        model.train()
        total = 0.0
        for xb, yb in loader:
            loss = F.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(yb)
        if epoch % 4 == 0:
            val_loss, val_acc = validate(model, val_set)
            print(
                f"[{tag}] epoch {epoch:2d}  train {total / len(train_set):.4f}  "
                f"val {val_loss:.4f}  acc {val_acc:.4f}"
            )


@torch.no_grad()
def validate(model, val_set):
    model.eval()
    x, y = val_set.tensors
    logits = model(x)
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(21)
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    low, high = y < 5, y >= 5
    source_train, source_val = split(X[low], y[low], n_train=700, seed=0)
    target_train, target_val = split(X[high], y[high] - 5, n_train=80, seed=0)

    model = Net(n_classes=5)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    train(model, optimizer, source_train, source_val, epochs=8, tag="pretrain")

    # new task: new head, smaller learning rate for everything
    model.fc = nn.Linear(model.fc.in_features, 5)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    train(model, optimizer, target_train, target_val, epochs=24, tag="finetune")


if __name__ == "__main__":
    main()
