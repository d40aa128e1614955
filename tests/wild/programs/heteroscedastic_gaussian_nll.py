"""Healthy: mean and variance by two heads with GaussianNLLLoss, the mean alone first, then both; early stopping on held-out likelihood."""
import copy

import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


class MeanVariance(nn.Module):
    def __init__(self, n_in, n_hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_in, n_hidden), nn.SiLU(), nn.Dropout(0.1))
        self.mean = nn.Linear(n_hidden, 1)
        self.variance = nn.Sequential(nn.Linear(n_hidden, 1), nn.Softplus())

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.variance(h) + 1e-3


X, y = load_diabetes(return_X_y=True)
y = y[:, None]
X_train, X_valid, y_train, y_valid = train_test_split(X, y, test_size=0.25, random_state=0)
scale_x, scale_y = StandardScaler().fit(X_train), StandardScaler().fit(y_train)
as_tensor = lambda scaler, a: torch.tensor(scaler.transform(a), dtype=torch.float32)
train = TensorDataset(as_tensor(scale_x, X_train), as_tensor(scale_y, y_train))
valid_x, valid_y = as_tensor(scale_x, X_valid), as_tensor(scale_y, y_valid)

model, nll, mse = MeanVariance(X.shape[1]), nn.GaussianNLLLoss(), nn.MSELoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-2)
best, best_state, patience = float("inf"), None, 0
for epoch in range(40):
    model.train()
    for xb, yb in DataLoader(train, batch_size=32, shuffle=True):
        mean, variance = model(xb)
        loss = mse(mean, yb) if epoch < 3 else nll(mean, yb, variance)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch < 3:
        continue
    model.eval()
    with torch.no_grad():
        held_out = nll(*[model(valid_x)[0], valid_y, model(valid_x)[1]]).item()
    if held_out < best:
        best, best_state, patience = held_out, copy.deepcopy(model.state_dict()), 0
    else:
        patience += 1
        if patience == 5:
            break
model.load_state_dict(best_state)
model.eval()
with torch.no_grad():
    mean, variance = model(valid_x)
inside = ((mean - valid_y).abs() < 1.645 * variance.sqrt()).float().mean()
print(f"stopped after epoch {epoch}, nll {best:.3f}, 90 % intervals hold {inside:.2f}")
