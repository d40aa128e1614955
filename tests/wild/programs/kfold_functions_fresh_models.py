"""Cross-validation in functions: each fold builds, trains, scores and frees its own model; a scaler fitted on the training part only."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold


def standardise(train, *others):
    mean, std = train.mean(0), train.std(0) + 1e-8
    return [(part - mean) / std for part in (train, *others)]


def fit_fold(x, y, x_valid, y_valid, seed, epochs=25, batch=32, lr=1e-2):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(x.shape[1], 24), nn.ReLU(), nn.Dropout(0.1), nn.Linear(24, 1), nn.Flatten(0))
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-2)
    criterion = nn.HuberLoss()
    best = float("inf")
    for _ in range(epochs):
        model.train()
        for index in torch.randperm(len(x)).split(batch):
            optimizer.zero_grad()
            criterion(model(x[index]), y[index]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            best = min(best, (model(x_valid) - y_valid).square().mean().sqrt().item())
    return best


def cross_validate(x, y, folds=5):
    scores = []
    for fold, (train, valid) in enumerate(KFold(folds, shuffle=True, random_state=0).split(x)):
        x_train, x_valid = standardise(x[train], x[valid])
        y_train, y_valid = standardise(y[train], y[valid])
        tensors = [torch.tensor(a, dtype=torch.float32) for a in (x_train, y_train, x_valid, y_valid)]
        scores.append(fit_fold(*tensors, seed=fold))
        print(f"fold {fold} rmse {scores[-1]:.3f}")
    return np.mean(scores), np.std(scores)


if __name__ == "__main__":
    data = load_diabetes()
    mean, std = cross_validate(data.data, data.target)
    print(f"rmse {mean:.3f} +- {std:.3f}")
