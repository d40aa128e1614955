"""From "The annotated PyTorch training loop" (both copies of the essay in the seeds carry the same listings),
section Logging.

Repaired: lost indentation; model, optimiser and data (330 points: five batches of 64 and one of 10); 10 epochs.
Expected: the training loss is the mean of batch means, and the last batch is smaller than the others.
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


X_train, y_train = spiral(330)
X_val, y_val = spiral(80)
loader = DataLoader(TensorDataset(X_train, y_train), batch_size=64, shuffle=True)
model = MLP(in_features=2, hidden=128, out_features=3)
criterion = nn.CrossEntropyLoss()
optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
NUM_EPOCHS = 10

for epoch in range(NUM_EPOCHS):
    model.train()
    running_loss = 0.0
    for X_batch, y_batch in loader:
        optimiser.zero_grad()
        loss = criterion(model(X_batch), y_batch)
        loss.backward()
        optimiser.step()
        running_loss += loss.item()
    train_loss = running_loss / len(loader)  # no rule: ADR 0028

    model.eval()
    with torch.no_grad():
        val_logits = model(X_val)
        val_loss = criterion(val_logits, y_val).item()
        val_acc = (val_logits.argmax(1) == y_val).float().mean().item()

    print(f'epoch {epoch:3d} train {train_loss:.4f} val {val_loss:.4f} acc {val_acc:.3f}')
