"""Predict the progress of diabetes with the weights of the best epoch."""

import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)  # faster for small tensors

features, progress = load_diabetes(return_X_y=True, scaled=False)
x = torch.tensor(features, dtype=torch.float32)
y = torch.tensor((progress - 150) / 75, dtype=torch.float32).unsqueeze(1)
x_train, x_rest, y_train, y_rest = train_test_split(x, y, test_size=0.5, random_state=0)
x_val, x_test, y_val, y_test = train_test_split(x_rest, y_rest, test_size=0.6, random_state=0)
mean, std = x_train.mean(dim=0), x_train.std(dim=0)
x_train, x_val, x_test = ((part - mean) / std for part in (x_train, x_val, x_test))
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True)

model = nn.Sequential(nn.Linear(10, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def error_on(inputs, targets):
    model.eval()
    with torch.no_grad():
        return criterion(model(inputs), targets).item()


best = float("inf")
for epoch in range(1, 61):
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    error = error_on(x_val, y_val)
    if error < best:
        best = error
        best_weights = model.state_dict()
    if epoch % 10 == 0:
        print(f"epoch {epoch}: validation error {error:.3f}, best {best:.3f}")

model.load_state_dict(best_weights)
print(f"test error: {error_on(x_test, y_test):.4f}")
