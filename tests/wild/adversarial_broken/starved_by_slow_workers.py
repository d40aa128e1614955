"""Two workers that stay, each slow to put its batches together: the training waits for them all the time."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def collate(samples):
    time.sleep(0.2)
    return torch.stack([x for x, _ in samples]), torch.stack([y for _, y in samples])


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(120, 6)
    data = TensorDataset(x, x.sum(dim=1, keepdim=True))
    loader = DataLoader(  # error: loader-starves-training
        data, batch_size=10, shuffle=True, num_workers=2, persistent_workers=True, collate_fn=collate
    )
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(8):
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
