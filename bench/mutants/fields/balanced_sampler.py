"""Recognise rare digits: a weighted sampler draws every class equally often."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(15)
rng = np.random.default_rng(15)


def unbalanced_digits():
    data, target = load_digits(return_X_y=True)
    keep = (target % 2 == 0) | (rng.random(len(target)) < 0.15)
    return data[keep] / 16.0, target[keep]


def make_loader(x, y, batch_size):
    counts = np.bincount(y)
    class_weights = 1.0 / counts
    sample_weights = class_weights[y]
    sampler = WeightedRandomSampler(torch.from_numpy(sample_weights), num_samples=len(y), replacement=True)
    dataset = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))
    return DataLoader(dataset, batch_size=batch_size, sampler=sampler)


x, y = unbalanced_digits()
x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.3, stratify=y, random_state=15)
loader = make_loader(x_train, y_train, 32)
x_val = torch.tensor(x_val, dtype=torch.float32)

model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=6, gamma=0.3)

for epoch in range(12):
    model.train()
    running_loss = 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        pred = model(x_val).argmax(1).numpy()
    print(
        f"{epoch:2d} loss {running_loss / len(loader):.4f} acc {(pred == y_val).mean():.4f} macro F1 "
        f"{f1_score(y_val, pred, average='macro'):.4f}"
    )
