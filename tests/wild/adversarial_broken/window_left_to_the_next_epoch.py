"""Accumulation as in most tutorials: nine batches, windows of six, and nothing at the end of the epoch."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accum_iter = 6


def get_loader():
    x = torch.randn(90, 12)
    return DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=10, shuffle=True)


def main():
    train_loader = get_loader()
    model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 2))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(6):
        for batch_idx, (inputs, labels) in enumerate(train_loader):
            with torch.set_grad_enabled(True):
                preds = model(inputs)
                loss = criterion(preds, labels)
                loss = loss / accum_iter
                loss.backward()
                if (batch_idx + 1) % accum_iter == 0:
                    optimizer.step()  # error: accumulation-window-dropped
                    optimizer.zero_grad()
        print(epoch, loss.item() * accum_iter)


main()
