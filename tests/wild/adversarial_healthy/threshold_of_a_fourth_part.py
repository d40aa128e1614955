"""A threshold is chosen on a fourth part, which is read with the transform of the test."""
import math
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rng = np.random.default_rng(0)

from sklearn.metrics import f1_score
n, d = 1600, 10
x = torch.randn(n, d) * 3 + 1
y = ((x[:, 0] + x[:, 1] + 2 * torch.randn(n)) > 3).float()
parts = dict(zip(("train", "val", "hold", "test"), torch.randperm(n).split([800, 200, 300, 300])))
mean, std = x[parts["train"]].mean(0), x[parts["train"]].std(0)
train_transform = lambda v: (v - mean) / std + 0.05 * torch.randn_like(v)
test_transform = lambda v: (v - mean) / std

def loader(part, shuffle=False):
    return DataLoader(TensorDataset(x[parts[part]], y[parts[part]]), 64, shuffle=shuffle)

def predict(model, batches, transform):
    model.eval()
    with torch.no_grad():
        found = [(yb, model(transform(xb)).squeeze(1).sigmoid()) for xb, yb in batches]
    return torch.cat([a for a, _ in found]).numpy(), torch.cat([b for _, b in found]).numpy()

def best_threshold(labels, scores):
    grid = np.linspace(0.05, 0.95, 19)
    return grid[int(np.argmax([f1_score(labels, scores > t) for t in grid]))]

net = nn.Sequential(nn.Linear(d, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.AdamW(net.parameters(), 5e-3)
val_loader, hold_loader, test_loader = loader("val"), loader("hold"), loader("test")
best = -1.0
for epoch in range(6):
    net.train()
    for xb, yb in loader("train", True):
        loss = F.binary_cross_entropy_with_logits(net(train_transform(xb)).squeeze(1), yb)
        opt.zero_grad(); loss.backward(); opt.step()
    y_val, p_val = predict(net, val_loader, test_transform)
    score = f1_score(y_val, p_val > 0.5)
    if score > best:
        best, kept = score, {k: v.clone() for k, v in net.state_dict().items()}
net.load_state_dict(kept)
y_hold, p_hold = predict(net, hold_loader, test_transform)
threshold = best_threshold(y_hold, p_hold)
y_test, p_test = predict(net, test_loader, test_transform)
print("F1", round(f1_score(y_test, p_test > threshold), 4), "at", threshold)
