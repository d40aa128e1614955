"""Results that depend on the other samples on purpose: batch statistics in evaluation too, nearest neighbours."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(300, 5, 4) + torch.randint(0, 3, (300, 1, 1))
y = x.mean((1, 2)).gt(1).long()
train = DataLoader(TensorDataset(x[:240], y[:240]), 24, shuffle=True)
val = DataLoader(TensorDataset(x[240:], y[240:]), 30)


class Relative(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(5, track_running_stats=False)
        self.lstm = nn.LSTM(4, 8, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        features = self.lstm(self.norm(x))[0][:, -1]
        features = features - features.mean(0, keepdim=True)
        nearest = torch.cdist(features, features).topk(4, largest=False).indices
        return self.head(features[nearest].mean(1))


model = Relative()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _epoch in range(2):
    model.train()
    for a, b in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(a), b).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(sum((model(a).argmax(1) == b).sum().item() for a, b in val) / 60)
