"""From "The annotated PyTorch training loop" (both copies of the essay in the seeds carry the same listings),
section The forward pass: a forward that recomputes two blocks in the backward pass.

Repaired: lost indentation; the class around the method; data and a short loop. Expected: nothing.
"""
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

torch.set_num_threads(1)


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.block1 = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Dropout(0.1))
        self.block2 = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        x = checkpoint(self.block1, x, use_reentrant=False)
        x = checkpoint(self.block2, x, use_reentrant=False)
        return self.head(x)


model = Blocks()
criterion = nn.CrossEntropyLoss()
optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
X_batch, y_batch = torch.randn(64, 2), torch.randint(0, 3, (64,))
for step in range(10):
    optimiser.zero_grad()
    loss = criterion(model(X_batch), y_batch)
    loss.backward()
    optimiser.step()
print(f"loss={loss.item():.4f}")
