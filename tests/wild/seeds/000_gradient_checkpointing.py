"""From "PyTorch Training", section Gradient Checkpointing.

Repaired: lost indentation; imports; data and a short loop. Expected: nothing (a Linear and ReLU block saves no memory
this way, which is not a failure).
"""
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

torch.set_num_threads(1)


class CheckpointedModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.block1 = nn.Sequential(nn.Linear(256, 256), nn.ReLU())
        self.block2 = nn.Sequential(nn.Linear(256, 256), nn.ReLU())
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        x = checkpoint(self.block1, x, use_reentrant=False)
        x = checkpoint(self.block2, x, use_reentrant=False)
        return self.head(x)


model = CheckpointedModel()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, targets = torch.randn(64, 256), torch.randint(0, 10, (64,))
for step in range(10):
    optimizer.zero_grad()
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
print(f"loss={loss.item():.4f}")
