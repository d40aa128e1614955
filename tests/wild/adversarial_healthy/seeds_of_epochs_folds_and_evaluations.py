"""Seeds that are set on purpose: one for each epoch, fold and evaluation, and one for data that stays the same."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def make_data():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(120, 6, generator=generator)
    return TensorDataset(x, x[:, 0] * x[:, 1])


def noisy_error(model, data):
    state = torch.get_rng_state()
    torch.manual_seed(99)
    with torch.no_grad():
        x, y = data.tensors
        error = F.mse_loss(model(x + 0.1 * torch.randn_like(x))[:, 0], y).item()
    torch.set_rng_state(state)
    return error


for fold in range(4):
    torch.manual_seed(0)
    data = make_data()
    model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Dropout(0.1), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(4):
        torch.manual_seed(1000 + epoch)
        model.train()
        for x, y in DataLoader(data, batch_size=20, shuffle=True):
            optimizer.zero_grad()
            F.mse_loss(model(x)[:, 0], y).backward()
            optimizer.step()
        model.eval()
        error = noisy_error(model, data)
    print(f"fold {fold}: {error:.4f}")
