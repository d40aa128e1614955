"""Predict the progress of diabetes from ten measurements."""

import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)  # faster for small tensors

features, progress = load_diabetes(return_X_y=True, scaled=False)
parts = train_test_split(features, progress, test_size=0.25, random_state=0)
x_train, x_test, y_train, y_test = (torch.tensor(part, dtype=torch.float32) for part in parts)
mean, std = x_train.mean(dim=0), x_train.std(dim=0)
x_train, x_test = (x_train - mean) / std, (x_test - mean) / std
mean, std = y_train.mean(), y_train.std()
y_train, y_test = (y_train - mean) / std, (y_test - mean) / std
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-3)

for epoch in range(1, 41):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    if epoch % 10 == 0:
        print(f"epoch {epoch}: loss {total / len(y_train):.3f}")

model.eval()
with torch.no_grad():
    predicted = model(x_test).flatten()
explained = 1 - ((predicted - y_test) ** 2).mean() / y_test.var(correction=0)
print(f"explained variance: {explained.item():.4f}")
