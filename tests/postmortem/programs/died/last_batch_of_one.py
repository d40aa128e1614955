# says: `net.1` was given one sample
# says: 33 samples in batches of 16 leave a last batch of 1
# says: make `loader` with `drop_last=True`
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
loader = DataLoader(TensorDataset(torch.randn(33, 4)), batch_size=16, shuffle=True)  # related
for (x,) in loader:
    net(x).mean().backward()  # died: batch-of-one
