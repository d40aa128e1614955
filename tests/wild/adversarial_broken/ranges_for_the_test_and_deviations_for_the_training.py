"""Cells are brought to mean 0 and deviation 1 for the training, and to the range 0 to 1 for the test."""

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler, MinMaxScaler
from torch import nn
torch.manual_seed(0)
X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
raw, X_train = X_train, StandardScaler().fit_transform(X_train)
X_train = torch.tensor(X_train, dtype=torch.float32)
X_test = torch.tensor(MinMaxScaler().fit(raw).transform(X_test), dtype=torch.float32)  # error: inputs-on-another-scale
y_train, y_test = (torch.tensor(v, dtype=torch.float32) for v in (y_train, y_test))
model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(200):
    opt.zero_grad()
    loss = nn.functional.binary_cross_entropy_with_logits(model(X_train).squeeze(1), y_train)
    loss.backward()
    opt.step()
model.eval()
with torch.no_grad():
    acc = ((model(X_test).squeeze(1) > 0) == y_test.bool()).float().mean()
print("accuracy", acc.item())
