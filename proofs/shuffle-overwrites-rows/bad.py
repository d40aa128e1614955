import random
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
random.seed(seed)
digits = load_digits()
images, labels = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
split = torch.randperm(len(images))
train, test = split[:1200], split[1200:]

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
order = torch.arange(1200)
for _ in range(12):
    random.shuffle(order)  # error: shuffle-overwrites-rows
    for rows in order.split(32):
        loss = F.cross_entropy(model(images[train[rows]]), labels[train[rows]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    print(f"result: {(model(images[test]).argmax(1) == labels[test]).float().mean():.4f}")
