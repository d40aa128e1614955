"""From "The annotated PyTorch training loop" (both copies of the essay in the seeds carry the same listings),
section Mixed precision: the bfloat16 lines, pasted as printed into the loop over the batches.

Repaired: lost indentation; CUDA -> CPU; model, optimiser, data and the two `for` lines: the fragment stands for the inside
of a loop, but it was printed without its zero_grad. Expected: the missing zero_grad.
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

for epoch in range(4):
    for X_batch, y_batch in loader:
        with torch.amp.autocast('cpu', dtype=torch.bfloat16):
            logits = model(X_batch)
            loss = criterion(logits, y_batch)

        loss.backward()  # no scaler needed
        optimiser.step()  # error: missing-zero-grad
print(logits.dtype, f"loss={loss.item():.4f}")
