"""Rare fraud cases with the focal loss."""

import torch
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score, f1_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import RobustScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class FocalLoss(nn.Module):
    """Binary focal loss on logits (Lin et al.)."""

    def __init__(self, alpha=0.75, gamma=2.0):
        super().__init__()
        self.alpha, self.gamma = alpha, gamma

    def forward(self, logits, targets):
        bce = nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        pt = torch.exp(-bce)
        alpha_t = self.alpha * targets + (1 - self.alpha) * (1 - targets)
        return (alpha_t * (1 - pt) ** self.gamma * bce).mean()


def load():
    x, y = make_classification(
        n_samples=3000, n_features=12, n_informative=5, weights=[0.95], class_sep=0.8, flip_y=0.005, random_state=17
    )
    x_tr, x_te, y_tr, y_te = train_test_split(x, y, stratify=y, test_size=0.3, random_state=17)
    scaler = RobustScaler().fit(x_tr)
    to = lambda a: torch.tensor(a, dtype=torch.float32)  # noqa: E731
    return to(scaler.transform(x_tr)), to(scaler.transform(x_te)), to(y_tr), to(y_te)


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        p = torch.sigmoid(model(x).squeeze(-1))
    return average_precision_score(y, p), f1_score(y, p > 0.5), p.mean().item()


def run(epochs=9):
    torch.manual_seed(17)
    x_tr, x_te, y_tr, y_te = load()
    loader = DataLoader(TensorDataset(x_tr, y_tr), batch_size=128, shuffle=True)
    model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
    criterion = FocalLoss()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        model.train()
        losses = []
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb).squeeze(-1), yb)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1} focal {sum(losses) / len(losses):.5f}")
    ap, f1, mean_p = evaluate(model, x_te, y_te)
    print(f"average precision {ap:.4f} f1 {f1:.4f} mean probability {mean_p:.4f}")


run()
