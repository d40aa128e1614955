"""From "The annotated PyTorch training loop" (both copies of the essay in the seeds carry the same listings),
section Clearing the gradient buffer: accumulation over four batches.

Repaired: lost indentation; model, optimiser and data (2000 points as in the essay: 31 batches of 64 and one of 16, so the
eight windows are complete). Expected: the last window averages 64 + 64 + 64 + 16 points as four equal quarters, so a
point of the last batch counts four times as much as the others.
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


X_train, y_train = spiral(2000)
loader = DataLoader(TensorDataset(X_train, y_train), batch_size=64, shuffle=True)
model = MLP(in_features=2, hidden=128, out_features=3)
criterion = nn.CrossEntropyLoss()
optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)

# gradient accumulation: effective batch size = batch_size * ACCUM_STEPS
ACCUM_STEPS = 4
for i, (X_batch, y_batch) in enumerate(loader):
    logits = model(X_batch)
    loss = criterion(logits, y_batch) / ACCUM_STEPS  # no rule: ADR 0025
    loss.backward()  # adds to .grad each time
    if (i + 1) % ACCUM_STEPS == 0:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
print(f"loss={ACCUM_STEPS * loss.item():.4f}")
