"""Several topics per article: one linear layer on top of word counts, one logit for each topic."""

import numpy as np
import torch
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score
from torch import nn


def split_data(seed):
    x, y = make_multilabel_classification(
        n_samples=1200, n_features=40, n_classes=6, n_labels=2, length=60, random_state=seed
    )
    x = np.log1p(x).astype(np.float32)
    mean = x[:800].mean(axis=0)
    x = x - mean
    return (
        torch.from_numpy(x[:800]),
        torch.tensor(y[:800]).float(),
        torch.from_numpy(x[800:]),
        torch.tensor(y[800:]).float(),
    )


def train_step(model, batch_x, batch_y, criterion, optimizer):
    model.train()
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(model(batch_x), batch_y)
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def report(model, x, y, criterion):
    model.eval()
    logits = model(x)
    predictions = (torch.sigmoid(logits) > 0.5).int()
    return {
        "loss": criterion(logits, y).item(),
        "micro_f1": f1_score(y.numpy(), predictions.numpy(), average="micro"),
        "macro_f1": f1_score(y.numpy(), predictions.numpy(), average="macro", zero_division=0),
        "exact": (predictions == y).all(dim=1).float().mean().item(),
    }


if __name__ == "__main__":
    torch.manual_seed(48)
    x_train, y_train, x_val, y_val = split_data(48)
    model = nn.Sequential(nn.Dropout(0.1), nn.Linear(40, 32), nn.ReLU(), nn.Linear(32, 6))
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.NAdam(model.parameters(), lr=3e-3)
    for epoch in range(12):
        losses = [
            train_step(model, x_train[i], y_train[i], criterion, optimizer) for i in torch.randperm(800).split(40)
        ]
        if epoch % 3 == 2:
            result = report(model, x_val, y_val, criterion)
            line = " ".join(f"{k} {v:.4f}" for k, v in result.items())
            print(f"epoch {epoch + 1:2d} train {np.mean(losses):.4f} | {line}")
