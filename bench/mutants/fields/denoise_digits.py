"""Denoising autoencoder on digits with a plateau schedule."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, random_split

torch.manual_seed(19)
images = torch.tensor(load_digits().images, dtype=torch.float32).div(16).unsqueeze(1)
train_set, val_set, test_set = random_split(images, [1200, 300, 297], generator=torch.Generator().manual_seed(19))
train_loader = DataLoader(train_set, batch_size=50, shuffle=True)


class DenoisingAE(nn.Module):
    """Small dense autoencoder."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 20), nn.ReLU())
        self.decode = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.Unflatten(1, (1, 8, 8)))

    def forward(self, x):
        return self.decode(self.net(x))


def add_noise(x, std=0.35, generator=None):
    return x + std * torch.randn(x.shape, generator=generator)


def denoising_error(model, dataset):
    clean = torch.stack(list(dataset))
    noisy = add_noise(clean, generator=torch.Generator().manual_seed(77))
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(noisy), clean).item()


model = DenoisingAE()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=2)

for epoch in range(1, 31):
    model.train()
    total = 0.0
    for clean in train_loader:
        noisy = add_noise(clean)
        optimizer.zero_grad()
        loss = criterion(model(noisy), clean)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(clean)
    val = denoising_error(model, val_set)
    scheduler.step(val)
    if epoch % 6 == 0:
        lr = optimizer.param_groups[0]["lr"]
        print(f"epoch {epoch} train {total / len(train_set):.5f} val {val:.5f} lr {lr:.6f}")

print(f"test error after denoising {denoising_error(model, test_set):.5f}")
