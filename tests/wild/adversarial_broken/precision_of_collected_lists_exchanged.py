"""Decisions and labels are collected in lists, and given to the precision in the wrong order."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import precision_score
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data, kinds = load_breast_cancer(return_X_y=True)
order = torch.randperm(len(data)).numpy()
data, kinds = data[order, :4], kinds[order]
scaler = StandardScaler().fit(data[:340])
inputs, answers = torch.tensor(scaler.transform(data)).float(), torch.tensor(kinds).float()

model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
weight = torch.tensor(3.0)
for _ in range(60):
    optimizer.zero_grad()
    F.binary_cross_entropy_with_logits(model(inputs[:340]).squeeze(1), answers[:340], pos_weight=weight).backward()
    optimizer.step()

model.eval()
found, known = [], []
with torch.no_grad():
    for x, y in DataLoader(TensorDataset(inputs[340:], answers[340:]), batch_size=64):
        found += (torch.sigmoid(model(x)).squeeze(1) > 0.5).int().tolist()
        known += y.int().tolist()
print("precision", precision_score(found, known))  # error: metric-off-target
