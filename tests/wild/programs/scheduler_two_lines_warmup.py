"""Healthy: one schedule stepped at two lines, per batch in the warm-up and per epoch after it; epochs are brought up first."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def main(epochs=10, warm_batches=16, done=4):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(320, 6)
    y = x[:, :1] - 2 * x[:, 1:2]
    train = DataLoader(TensorDataset(x[:256], y[:256]), batch_size=32, shuffle=True)
    val = DataLoader(TensorDataset(x[256:], y[256:]), batch_size=32)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    ramp = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda n: min(1.0, (n + 1) / warm_batches) * 0.9 ** max(0, n - warm_batches))
    for _ in range(done):
        ramp.step()
    seen = 0
    for epoch in range(epochs):
        for a, b in train:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(a), b).backward()
            optimizer.step()
            seen += 1
            if seen <= warm_batches:
                ramp.step()
        model.eval()
        with torch.no_grad():
            loss = sum(nn.functional.mse_loss(model(a), b).item() for a, b in val) / len(val)
        model.train()
        if seen > warm_batches:
            ramp.step()
        print(epoch, f"{loss:.4f}", f"{optimizer.param_groups[0]['lr']:.4f}")


if __name__ == "__main__":
    main()
