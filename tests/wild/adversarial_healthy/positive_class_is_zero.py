"""The positive class is 0, and counted by it."""
import math
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rng = np.random.default_rng(0)

# as in the breast cancer data of scikit-learn: 0 is malignant, 1 is benign
x = torch.randn(1000, 10)
y = ((x[:, :3].sum(1) + torch.randn(1000)) > -1).long()
x_train, x_test, y_train, y_test = x[:700], x[700:], y[:700], y[700:]
net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), 5e-3)
for epoch in range(6):
    for i in torch.randperm(700).split(50):
        opt.zero_grad()
        F.cross_entropy(net(x_train[i]), y_train[i]).backward()
        opt.step()
net.eval()
with torch.no_grad():
    pred = net(x_test).argmax(1)
labels = y_test
tp = ((pred == 0) & (labels == 0)).sum().item()
fn = ((pred == 1) & (labels == 0)).sum().item()
fp = ((pred == 0) & (labels == 1)).sum().item()
print("sensitivity", round(tp / (tp + fn), 4), "ppv", round(tp / (tp + fp), 4))
