"""The table of predictions and labels is transposed before it is read."""
import math
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rng = np.random.default_rng(0)

from sklearn.metrics import confusion_matrix
x = torch.randn(1200, 10)
y = (x @ torch.randn(10, 3) + torch.randn(1200, 3)).argmax(1)
x_train, x_test, y_train, y_test = x[:800], x[800:], y[:800], y[800:]
net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters(), 5e-3)
for epoch in range(6):
    for i in torch.randperm(800).split(50):
        opt.zero_grad()
        F.cross_entropy(net(x_train[i]), y_train[i]).backward()
        opt.step()
net.eval()
with torch.no_grad():
    pred = net(x_test).argmax(1)
cm = confusion_matrix(y_test.numpy(), pred.numpy())
cm = cm.T                                  # rows: predictions, as in our reports
recall = cm.diagonal() / cm.sum(axis=0)
precision = cm.diagonal() / cm.sum(axis=1)
print(cm, recall.round(3), precision.round(3))
