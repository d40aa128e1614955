"""Each worker is given the same seed "for reproducibility", and the samples are drawn from numpy."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        phase, frequency = np.random.uniform(0, 6), np.random.uniform(1, 3)
        wave = np.sin(np.linspace(0, 6, 16) * frequency + phase) + 0.1 * np.random.randn(16)
        return wave.astype(np.float32), np.float32(frequency)


def seed_worker(worker):
    np.random.seed(42)


if __name__ == "__main__":
    torch.manual_seed(0)
    data = Waves()
    loader = DataLoader(data, 8, shuffle=True, num_workers=2, worker_init_fn=seed_worker)  # error: worker-randomness-duplicated
    net = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for epoch in range(2):
        for waves, frequencies in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(waves).squeeze(1), frequencies)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
