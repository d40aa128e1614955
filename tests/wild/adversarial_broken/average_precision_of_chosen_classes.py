"""The scores of an area under the curve are the classes of `torch.max`, in a model with a size from its data."""

import numpy as np
import torch
from sklearn.metrics import average_precision_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(900, 10)
y = (x[:, 0] + 0.8 * torch.randn(900) > 1.0).long()
train_loader = DataLoader(TensorDataset(x[:600], y[:600]), batch_size=50, shuffle=True)
test_loader = DataLoader(TensorDataset(x[600:], y[600:]), batch_size=100)
classes = len(y.unique())
model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, classes))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(5):
    model.train()
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    y_score, y_true = np.array([]), np.array([])
    with torch.no_grad():
        for inputs, labels in test_loader:
            _, predicted = torch.max(model(inputs), 1)
            y_score = np.concatenate([y_score, predicted.numpy()])
            y_true = np.concatenate([y_true, labels.numpy()])
    print(epoch, loss.item(), average_precision_score(y_true, y_score))  # error: metric-misreported
