"""Healthy: fp16 autocast with GradScaler("cpu"): unscale_ once, clip, step and update through the scaler; a skip is noticed."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def main(epochs=4, clip=1.0):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    centers = torch.randn(6, 16)
    y = torch.randint(0, 6, (768,))
    x = centers[y] + 0.7 * torch.randn(768, 16)
    train_loader = DataLoader(TensorDataset(x[:640], y[:640]), batch_size=64, shuffle=True)
    x_val, y_val = x[640:], y[640:]

    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(train_loader))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 12, growth_interval=20)

    applied = 0
    for epoch in range(epochs):
        model.train()
        for inputs, labels in train_loader:
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.float16):
                outputs = model(inputs)
                loss = F.cross_entropy(outputs, labels)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            scale = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            if scaler.get_scale() >= scale:  # not skipped
                scheduler.step()
                applied += 1
        model.eval()
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
            acc = (model(x_val).argmax(1) == y_val).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} val acc {acc:.4f} scale {scaler.get_scale():.0f}")
    print("steps applied", applied, "of", epochs * len(train_loader))


if __name__ == "__main__":
    main()
