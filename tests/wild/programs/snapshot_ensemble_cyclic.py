"""Snapshot ensemble: a cosine that restarts by hand in each cycle, a deep copy at each end, averaged probabilities of the copies."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

CYCLES, EPOCHS_PER_CYCLE, LR0 = 4, 4, 0.2


def cosine(iteration, per_cycle):
    return LR0 / 2 * (math.cos(math.pi * (iteration % per_cycle) / per_cycle) + 1)


def load():
    bunch = load_breast_cancer()
    parts = train_test_split(bunch.data, bunch.target, test_size=0.3, random_state=0, stratify=bunch.target)
    scaler = StandardScaler().fit(parts[0])
    x, x_test = (torch.tensor(scaler.transform(p), dtype=torch.float32) for p in parts[:2])
    return x, x_test, torch.tensor(parts[2]), torch.tensor(parts[3])


def train_snapshots(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=LR0, momentum=0.9)
    per_cycle, iteration, snapshots = EPOCHS_PER_CYCLE * len(loader), 0, []
    for cycle in range(CYCLES):
        for _ in range(EPOCHS_PER_CYCLE):
            for x, y in loader:
                for group in optimizer.param_groups:
                    group["lr"] = cosine(iteration, per_cycle)
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                iteration += 1
        snapshots.append(copy.deepcopy(model).eval())
        print(f"cycle {cycle} loss {loss.item():.4f}")
    return snapshots


def main():
    torch.manual_seed(3)
    x, x_test, y, y_test = load()
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2))
    snapshots = train_snapshots(model, loader)
    with torch.no_grad():
        probabilities = torch.stack([F.softmax(m(x_test), dim=1) for m in snapshots])
    single = [(p.argmax(1) == y_test).float().mean().item() for p in probabilities]
    together = (probabilities.mean(0).argmax(1) == y_test).float().mean().item()
    print("single", [round(a, 3) for a in single], "ensemble", round(together, 3))


if __name__ == "__main__":
    main()
