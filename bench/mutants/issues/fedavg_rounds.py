"""Federated averaging over clients with different class mixes."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.manual_seed(2)
rng = np.random.default_rng(2)
CLIENTS, ROUNDS, LOCAL_EPOCHS, BATCH, LR = 5, 12, 2, 32, 0.1


def load():
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, test_size=0.3, stratify=y, random_state=2)
    return (torch.tensor(X_train, dtype=torch.float32), torch.tensor(y_train),
            torch.tensor(X_test, dtype=torch.float32), torch.tensor(y_test))


def partition(labels):
    """Give every client mostly two of the ten classes."""
    parts = [[] for _ in range(CLIENTS)]
    for i, label in enumerate(labels.tolist()):
        home = label // 2
        parts[home if rng.random() < 0.9 else rng.integers(CLIENTS)].append(i)
    return [torch.tensor(p) for p in parts]


def build_model():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def local_update(model, x, y):
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    model.train()
    losses = []
    for _ in range(LOCAL_EPOCHS):
        for idx in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return model.state_dict(), float(np.mean(losses))


def federated_average(states, sizes):
    total = sum(sizes)
    average = copy.deepcopy(states[0])
    for key in average:
        average[key] = sum(state[key] * (size / total) for state, size in zip(states, sizes))
    return average


@torch.no_grad()
def test(model, x, y):
    model.eval()
    logits = model(x)
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


x_train, y_train, x_test, y_test = load()
shards = partition(y_train)
global_model = build_model()

for round_id in range(1, ROUNDS + 1):
    states, sizes, losses = [], [], []
    for shard in shards:
        client_model = copy.deepcopy(global_model)
        state, loss = local_update(client_model, x_train[shard], y_train[shard])
        states.append(state)
        sizes.append(len(shard))
        losses.append(loss)
    global_model.load_state_dict(federated_average(states, sizes))
    test_loss, test_acc = test(global_model, x_test, y_test)
    if round_id % 3 == 0:
        print(f"round {round_id:2d}  client loss {np.mean(losses):.4f}  "
              f"test loss {test_loss:.4f}  test acc {test_acc:.4f}")
