"""Mean and variance of disease progression (diabetes data) with a Gaussian likelihood."""

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

torch.manual_seed(42)
np.random.seed(42)

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=42)
x_scaler = StandardScaler().fit(X_train)
y_mean, y_std = y_train.mean(), y_train.std()

X_train = torch.tensor(x_scaler.transform(X_train), dtype=torch.float32)
X_test = torch.tensor(x_scaler.transform(X_test), dtype=torch.float32)
y_train = torch.tensor((y_train - y_mean) / y_std, dtype=torch.float32)
y_test = torch.tensor((y_test - y_mean) / y_std, dtype=torch.float32)

net = torch.nn.Sequential(
    torch.nn.Linear(10, 32),
    torch.nn.Tanh(),
    torch.nn.Dropout(0.2),
    torch.nn.Linear(32, 2),
)


def gaussian_nll(mu, log_var, target):
    return 0.5 * (log_var + (target - mu) ** 2 * torch.exp(-log_var)).mean()


def predict(inputs):
    mu, log_var = net(inputs).chunk(2, dim=1)
    return mu.squeeze(1), log_var.squeeze(1).clamp(-5, 5)


optimizer = torch.optim.Adam(net.parameters(), lr=0.005, weight_decay=1e-4)
for epoch in range(60):
    net.train()
    epoch_loss = 0.0
    for idx in torch.randperm(len(X_train)).split(32):
        mu, log_var = predict(X_train[idx])
        loss = gaussian_nll(mu, log_var, y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(idx)
    if (epoch + 1) % 10 == 0:
        print(f"epoch {epoch + 1}: train nll {epoch_loss / len(X_train):.4f}")

net.eval()
with torch.no_grad():
    mu, log_var = predict(X_test)
    nll = gaussian_nll(mu, log_var, y_test).item()
residual = (mu.flatten() - y_test).numpy() * y_std
print(f"test nll {nll:.4f}")
print(f"test RMSE {np.sqrt((residual**2).mean()):.2f} (guessing the mean: {(y_test.numpy() * y_std).std():.2f})")
