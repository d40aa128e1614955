"""From "The annotated PyTorch training loop" (both copies of the essay in the seeds carry the same listings),
section Checkpointing: save, and resume.

Repaired: lost indentation; a short training run around the two fragments; files in a temporary folder. Expected: the state
of the random generator is not saved; the shuffled order of the resumed epochs is not that of a run without a stop.
"""
import os
import tempfile

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
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=8)
device = torch.device('cpu')
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)


def train_one_epoch():
    model.train()
    for X_batch, y_batch in loader:
        optimiser.zero_grad()
        loss = criterion(model(X_batch), y_batch)
        loss.backward()
        optimiser.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        return criterion(model(X_val), y_val).item()


for epoch in range(4):
    val_loss = train_one_epoch()
    # save
    torch.save({  # no rule: ADR 0018
        'epoch': epoch,
        'model_state_dict': model.state_dict(),
        'optimiser_state_dict': optimiser.state_dict(),
        'scheduler_state_dict': scheduler.state_dict(),
        'val_loss': val_loss,
    }, 'checkpoint.pt')

# resume
checkpoint = torch.load('checkpoint.pt', map_location=device)
model.load_state_dict(checkpoint['model_state_dict'])
optimiser.load_state_dict(checkpoint['optimiser_state_dict'])
scheduler.load_state_dict(checkpoint['scheduler_state_dict'])
start_epoch = checkpoint['epoch'] + 1
for epoch in range(start_epoch, 8):
    val_loss = train_one_epoch()
print(f"val_loss={val_loss:.4f} lr={scheduler.get_last_lr()[0]:.2e}")
os.chdir('/')
