"""Decide by a threshold that is chosen on the test, and print its F1 score."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(900, 8)
y = (x[:, 0] + 0.7 * torch.randn(900) > 0.8).float()
x_train, x_val, x_test = x[:500], x[500:700], x[700:]
y_train, y_val, y_test = y[:500], y[500:700], y[700:]
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


@torch.no_grad()
def predict(rows: torch.Tensor) -> np.ndarray:
    model.eval()
    return torch.sigmoid(model(rows)).numpy()


def f1_score(labels: torch.Tensor, decisions: np.ndarray) -> float:
    right = float((labels.numpy() * decisions).sum())
    return 2 * right / (float(labels.sum()) + float(decisions.sum()))


for epoch in range(4):
    model.train()
    for rows in torch.randperm(500).split(50):
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(model(x_train[rows]), y_train[rows]).backward()
        optimizer.step()
    print(epoch, "F1 of the validation", f1_score(y_val, predict(x_val) > 0.5))
scores = predict(x_test)
threshold, best = 0.5, 0.0
for candidate in np.linspace(0.05, 0.95, 19):
    f1 = f1_score(y_test, scores > candidate)
    if f1 > best:
        best, threshold = f1, candidate  # error: chosen-without-validation
print("test F1", f1_score(y_test, scores > threshold))
