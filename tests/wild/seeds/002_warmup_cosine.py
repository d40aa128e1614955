"""From "The annotated PyTorch training loop" (both copies of the essay in the seeds carry the same listings),
section Learning rate schedules: linear warm-up and cosine decay, stepped for every batch.

Repaired: lost indentation; the schedule of the transformers library written out with LambdaLR; 100 of 10,000 steps ->
10 of 300; the loop around the last line. Expected: nothing.
"""
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)


class MLP(nn.Module):
    def __init__(self, in_features, hidden, out_features):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(in_features, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, out_features),
        )

    def forward(self, x):
        return self.net(x)


def spiral(n):
    """Three arms, n points."""
    y = torch.arange(n) % 3
    r = torch.rand(n)
    angle = 4.0 * r + 2.1 * y + 0.1 * torch.randn(n)
    return torch.stack([r * torch.sin(angle), r * torch.cos(angle)], dim=1), y


X_train, y_train = spiral(320)
X_val, y_val = spiral(80)
loader = DataLoader(TensorDataset(X_train, y_train), batch_size=64, shuffle=True)
model = MLP(in_features=2, hidden=128, out_features=3)
criterion = nn.CrossEntropyLoss()
optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)


def get_cosine_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps):
    def factor(step):
        if step < num_warmup_steps:
            return step / max(1, num_warmup_steps)
        progress = (step - num_warmup_steps) / max(1, num_training_steps - num_warmup_steps)
        return max(0.0, 0.5 * (1.0 + math.cos(math.pi * progress)))
    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


scheduler = get_cosine_schedule_with_warmup(
    optimiser,
    num_warmup_steps=10,
    num_training_steps=300,
)
for epoch in range(60):
    for X_batch, y_batch in loader:
        optimiser.zero_grad()
        loss = criterion(model(X_batch), y_batch)
        loss.backward()
        optimiser.step()
        scheduler.step()  # called per step, not per epoch, with this scheduler
print(f"loss={loss.item():.4f} lr={scheduler.get_last_lr()[0]:.2e}")
