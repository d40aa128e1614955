"""Healthy: mini-batches for training, the whole validation set as one tensor, `model(X_val)` in eval mode under inference_mode."""
import numpy as np
import torch
import torch.nn as nn

RANDOM_STATE = 27
np.random.seed(RANDOM_STATE)
torch.manual_seed(RANDOM_STATE)
torch.set_num_threads(1)

# a small tabular problem, prepared with numpy
n = 900
income, debt, age = np.random.gamma(4, 10, n), np.random.gamma(2, 8, n), np.random.uniform(18, 75, n)
risk = 1 / (1 + np.exp(0.08 * income - 0.12 * debt + 0.02 * (age - 45) - 1))
X = np.column_stack([income, debt, age]).astype(np.float32)
y = (np.random.rand(n) < risk).astype(np.float32)
X_train, X_val, y_train, y_val = X[:700], X[700:], y[:700], y[700:]
mean, std = X_train.mean(axis=0), X_train.std(axis=0)
X_train, X_val = (X_train - mean) / std, (X_val - mean) / std

train_ds = torch.utils.data.TensorDataset(torch.tensor(X_train), torch.tensor(y_train).reshape(-1, 1))
train_loader = torch.utils.data.DataLoader(train_ds, batch_size=35, shuffle=True)
X_val = torch.tensor(X_val)
y_val = torch.tensor(y_val).reshape(-1, 1)


class LoanModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.block1 = nn.Sequential(nn.Linear(3, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(0.2))
        self.block2 = nn.Sequential(nn.Linear(24, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.2))
        self.out = nn.Linear(12, 1)

    def forward(self, x):
        return torch.sigmoid(self.out(self.block2(self.block1(x))))


model = LoanModel()
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for epoch in range(8):
    model.train()
    for Xb, yb in train_loader:
        y_hat = model(Xb)
        loss = criterion(y_hat, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    model.eval()
    with torch.inference_mode():
        y_hat = model(X_val)
        val_loss = criterion(y_hat, y_val).item()
        acc = ((y_hat > 0.5) == (y_val > 0.5)).float().mean().item()
    print(f"Epoch {epoch + 1}: val loss {val_loss:.4f} | val acc {acc:.4f}")
