"""A cross-validation in functions: the network is built once, and each fold goes on with the weights of the one before."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset


def fit(net, data, rows, passes=6):
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)  # error: train-validation-overlap
    for _ in range(passes):
        for x, y in DataLoader(Subset(data, rows), batch_size=25, shuffle=True):
            optimizer.zero_grad(set_to_none=True)
            nn.functional.mse_loss(net(x).squeeze(1), y).backward()
            optimizer.step()


@torch.inference_mode()
def error(net, data, rows):
    net.eval()
    total = sum(nn.functional.mse_loss(net(x).squeeze(1), y, reduction="sum") for x, y in DataLoader(Subset(data, rows), 50))
    net.train()
    return total.item() / len(rows)


torch.manual_seed(0)
x = torch.randn(500, 12)
data = TensorDataset(x, x[:, 0] * x[:, 1] + 0.3 * torch.randn(500))
parts = torch.randperm(500).chunk(5)
net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
errors = []
for held in range(5):
    fit(net, data, torch.cat([part for k, part in enumerate(parts) if k != held]).tolist())
    errors.append(error(net, data, parts[held].tolist()))
print("mean squared error by fold", [round(value, 3) for value in errors])
