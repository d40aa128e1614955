"""Sparse regression with an L1 penalty on the input layer."""
import torch
import torch.nn as nn
from sklearn.datasets import make_regression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

torch.manual_seed(9)

L1_WEIGHT = 0.05
EPOCHS = 200
BATCH = 25


def load_data():
    X, y = make_regression(n_samples=300, n_features=80, n_informative=8, noise=60.0, random_state=9)
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.4, random_state=9)
    x_scaler = StandardScaler().fit(X_train)
    y_scaler = StandardScaler().fit(y_train.reshape(-1, 1))

    def tensors(a, b):
        return (torch.tensor(x_scaler.transform(a), dtype=torch.float32),
                torch.tensor(y_scaler.transform(b.reshape(-1, 1)), dtype=torch.float32))

    return tensors(X_train, y_train), tensors(X_val, y_val)


def l1_penalty(model):
    penalty = torch.zeros(())
    for name, param in model.named_parameters():
        if name.endswith("weight"):
            penalty = penalty + param.abs().sum()
    return penalty


def train_epoch(model, optimizer, x, y):
    model.train()
    order = torch.randperm(len(x))
    fit_total, penalty_total = 0.0, 0.0
    for start in range(0, len(x), BATCH):
        batch = order[start:start + BATCH]
        fit = nn.functional.mse_loss(model(x[batch]), y[batch])
        penalty = L1_WEIGHT * l1_penalty(model)
        loss = fit + penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        fit_total += fit.item() * len(batch)
        penalty_total += penalty.item() * len(batch)
    return fit_total / len(x), penalty_total / len(x)


@torch.no_grad()
def r2(model, x, y):
    model.eval()
    residual = (model(x) - y).pow(2).sum()
    return (1 - residual / (y - y.mean()).pow(2).sum()).item()


def main():
    (x_train, y_train), (x_val, y_val) = load_data()
    model = nn.Linear(x_train.size(1), 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(1, EPOCHS + 1):
        fit, penalty = train_epoch(model, optimizer, x_train, y_train)
        if epoch % 40 == 0:
            print(f"epoch {epoch:3d}  fit {fit:.4f}  penalty {penalty:.4f}  "
                  f"val R2 {r2(model, x_val, y_val):.4f}")
    small = (model.weight.abs() < 0.01).sum().item()
    print(f"{small} of {model.weight.numel()} coefficients are below 0.01")


if __name__ == "__main__":
    main()
