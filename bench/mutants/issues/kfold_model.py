import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from torch import nn

SEED = 11
N_SPLITS = 5
EPOCHS = 25
BATCH = 32

torch.manual_seed(SEED)
np.random.seed(SEED)

X, y = make_classification(n_samples=600, n_features=30, n_informative=6,
                           n_redundant=4, flip_y=0.2, class_sep=0.8,
                           random_state=SEED)


def build_model():
    return nn.Sequential(
        nn.Linear(30, 64), nn.ReLU(),
        nn.Linear(64, 32), nn.ReLU(),
        nn.Linear(32, 1))


def iterate_batches(features, target):
    order = torch.randperm(len(features))
    for start in range(0, len(order), BATCH):
        idx = order[start:start + BATCH]
        yield features[idx], target[idx]


def fit(model, features, target):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    model.train()
    for _ in range(EPOCHS):
        for xb, yb in iterate_batches(features, target):
            optimizer.zero_grad()
            loss = loss_fn(model(xb).squeeze(1), yb)
            loss.backward()
            optimizer.step()
    return loss.item()


def score(model, features, target):
    model.eval()
    with torch.no_grad():
        predicted = (model(features).squeeze(1) > 0).float()
    return (predicted == target).float().mean().item()


folds = StratifiedKFold(n_splits=N_SPLITS, shuffle=True, random_state=SEED)
scores = []

for fold, (train_idx, val_idx) in enumerate(folds.split(X, y), start=1):
    scaler = StandardScaler().fit(X[train_idx])
    x_train = torch.tensor(scaler.transform(X[train_idx]), dtype=torch.float32)
    x_val = torch.tensor(scaler.transform(X[val_idx]), dtype=torch.float32)
    y_train = torch.tensor(y[train_idx], dtype=torch.float32)
    y_val = torch.tensor(y[val_idx], dtype=torch.float32)

    model = build_model()
    last_loss = fit(model, x_train, y_train)
    acc = score(model, x_val, y_val)
    scores.append(acc)
    print(f"fold {fold}: last batch loss {last_loss:.4f}  accuracy {acc:.4f}")

print(f"cross-validated accuracy {np.mean(scores):.4f} +/- {np.std(scores):.4f}")
