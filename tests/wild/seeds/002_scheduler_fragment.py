"""From "The annotated PyTorch training loop" (both copies of the essay in the seeds carry the same listings),
section Learning rate schedules: both halves exactly as printed, where the loops hold nothing but the steps.

Repaired: lost indentation; data, model, optimiser and schedule. Expected: an optimizer that steps without a backward
(it has no gradients, so nothing moves), and in the first half a schedule that follows the batches.
T_max=6 is the length of the two halves together, so the horizon is not a second mistake.
"""
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
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=6)

# wrong: lr decays len(loader) times per epoch instead of once
for X_batch, y_batch in loader:
    optimiser.step()  # error: step-without-backward
    scheduler.step()

# correct
for X_batch, y_batch in loader:
    optimiser.step()  # error: step-without-backward
scheduler.step()
