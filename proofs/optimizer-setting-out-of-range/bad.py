import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
digits = load_digits()
images, labels = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
split = torch.randperm(len(images))
train, test = split[:1200], split[1200:]

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.01, 1e-4)  # error: optimizer-setting-out-of-range
for _ in range(15):
    for rows in train[torch.randperm(1200)].split(32):
        loss = F.cross_entropy(model(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    print(f"result: {(model(images[test]).argmax(1) == labels[test]).float().mean():.4f}")
