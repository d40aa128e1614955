"""From "The annotated PyTorch training loop" (both copies of the essay in the seeds carry the same listings),
sections Compilation, and The efficient loop.

Repaired: lost indentation; CUDA -> CPU; model, data and the lines before the loop; the backend "eager" instead of
generated code, which takes longer than a test may. Expected: nothing.
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
NUM_EPOCHS = 10

device = torch.device('cpu')
model = torch.compile(MLP(in_features=2, hidden=128, out_features=3).to(device), backend='eager')
criterion = nn.CrossEntropyLoss()
optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=NUM_EPOCHS)

torch.backends.cudnn.benchmark = True

for epoch in range(NUM_EPOCHS):
    model.train()
    for X_batch, y_batch in loader:
        X_batch = X_batch.to(device, non_blocking=True)
        y_batch = y_batch.to(device, non_blocking=True)

        optimiser.zero_grad(set_to_none=True)

        with torch.amp.autocast('cpu', dtype=torch.bfloat16):
            logits = model(X_batch)
            loss = criterion(logits, y_batch)

        loss.backward()  # no scaler: bf16 doesn't underflow
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()

    scheduler.step()

    model.eval()
    with torch.inference_mode():
        val_logits = model(X_val.to(device))
        val_loss = criterion(val_logits, y_val.to(device))
print(f"val_loss={val_loss:.4f}")
