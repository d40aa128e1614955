"""The test data set is built with the transform of the training one."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
rng = np.random.RandomState(0)


class Jitter(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, signal):
        return signal * (1 + self.scale * torch.randn(1)) + self.scale * torch.randn_like(signal)


class Signals(Dataset):
    def __init__(self, n, transform):
        self.signals = rng.randn(n, 16).astype(np.float32)
        self.classes = (self.signals.sum(1) > 0).astype(np.int64)
        self.transform = transform

    def __len__(self):
        return len(self.signals)

    def __getitem__(self, index):
        return self.transform(torch.from_numpy(self.signals[index])), self.classes[index]


transform = Jitter(0.3)
train_loader = DataLoader(Signals(128, transform), batch_size=16, shuffle=True, num_workers=1)
test_loader = DataLoader(Signals(32, transform), batch_size=32)


def run(model, optimizer):
    for _epoch in range(2):
        model.train()
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@torch.no_grad()
def test(model):
    model.eval()
    hits = []
    for x, y in test_loader:  # error: augmentation-in-evaluation
        hits.append((model(x).argmax(1) == y).float().mean())
    return torch.stack(hits).mean()


if __name__ == "__main__":
    model = nn.Linear(16, 2)
    run(model, torch.optim.SGD(model.parameters(), 0.1))
    print(test(model))
