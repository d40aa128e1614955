"""From "PyTorch Training", section Distributed Training: the set-up of DDP, and the canonical loop behind it.

Repaired: lost indentation; imports; NCCL and torchrun -> one gloo process with a file:// store; data and loop.
Expected: nothing.
"""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


class SentimentClassifier(nn.Module):
    def __init__(self, input_dim=4, hidden_dim=32, num_classes=2):
        super().__init__()
        self.layer1 = nn.Linear(input_dim, hidden_dim)
        self.bn = nn.BatchNorm1d(hidden_dim)
        self.dropout = nn.Dropout(0.3)
        self.layer2 = nn.Linear(hidden_dim, num_classes)

    def forward(self, x):
        x = self.layer1(x)
        x = self.bn(x)
        x = F.relu(x)
        x = self.dropout(x)
        x = self.layer2(x)
        return x  # raw logits


folder = tempfile.TemporaryDirectory()
dist.init_process_group(backend='gloo', init_method=f'file://{folder.name}/store', rank=0, world_size=1)
local_rank = int(os.environ.get('LOCAL_RANK', 0))
model = SentimentClassifier().to('cpu')
model = DDP(model)
# Training loop is almost identical: DDP handles gradient sync
X = torch.randn(1000, 4)
y = (X[:, 0] > X[:, 1]).long()
train_loader = DataLoader(TensorDataset(X, y), batch_size=64, shuffle=True)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
model.train()
for epoch in range(2):
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
print(f"rank {local_rank} loss={loss.item():.4f}")
dist.destroy_process_group()
