"""From "The annotated PyTorch training loop" (both copies of the essay in the seeds carry the same listings),
section Mixed precision: float16 with a scaler.

Repaired: lost indentation; CUDA -> CPU; model, optimiser and data. Expected: nothing.
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

scaler = torch.amp.GradScaler('cpu')

for X_batch, y_batch in loader:
    optimiser.zero_grad()

    with torch.amp.autocast('cpu', dtype=torch.float16):
        logits = model(X_batch)
        loss = criterion(logits, y_batch)

    scaler.scale(loss).backward()  # backward in float16
    scaler.unscale_(optimiser)  # unscale before clipping
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimiser)  # step only if no inf/nan
    scaler.update()  # adjust scale factor
print(logits.dtype, scaler.get_scale(), f"loss={loss.item():.4f}")
