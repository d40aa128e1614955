import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset


class RiskTrainer:
    """Two-logit risk model with ROC-AUC tracking and best-epoch restore."""

    def __init__(self, n_features, lr=1e-3):
        self.model = nn.Sequential(
            nn.Linear(n_features, 48), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(48, 2))
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr, weight_decay=1e-3)
        self.best_auc, self.best_state = -1.0, None

    def train_epoch(self, loader):
        self.model.train()
        total = 0.0
        for xb, yb in loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(xb), yb)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(loader)

    @torch.no_grad()
    def predict(self, loader):
        self.model.eval()
        scores, targets = [], []
        for xb, yb in loader:
            logits = self.model(xb)
            scores.append(torch.softmax(logits, dim=1)[:, 1])
            targets.append(yb)
        return torch.cat(scores).numpy(), torch.cat(targets).numpy()

    def fit(self, train_loader, val_loader, epochs):
        for epoch in range(epochs):
            loss = self.train_epoch(train_loader)
            scores, targets = self.predict(val_loader)
            auc = roc_auc_score(targets, scores)
            if auc > self.best_auc:
                self.best_auc = auc
                self.best_state = {k: v.clone() for k, v in self.model.state_dict().items()}
            print(f"[{epoch:02d}] loss={loss:.4f} val_auc={auc:.4f}")
        self.model.load_state_dict(self.best_state)


def as_loader(X, y, shuffle=False):
    data = TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y))
    return DataLoader(data, batch_size=64, shuffle=shuffle, drop_last=shuffle)


if __name__ == "__main__":
    torch.manual_seed(42)
    X, y = make_classification(n_samples=4000, n_features=25, n_informative=8,
                               weights=[0.9], flip_y=0.03, class_sep=0.7, random_state=42)
    X_fit, X_test, y_fit, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=1)
    X_train, X_val, y_train, y_val = train_test_split(
        X_fit, y_fit, test_size=0.25, stratify=y_fit, random_state=1)
    scaler = StandardScaler().fit(X_train)

    trainer = RiskTrainer(X.shape[1])
    trainer.fit(as_loader(scaler.transform(X_train), y_train, shuffle=True),
                as_loader(scaler.transform(X_val), y_val), epochs=20)
    scores, targets = trainer.predict(as_loader(scaler.transform(X_test), y_test))
    print(f"test ROC-AUC {roc_auc_score(targets, scores):.4f}  "
          f"average precision {average_precision_score(targets, scores):.4f}")
