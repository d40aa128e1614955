"""Puzzles from a `random.Random` of the data set, and as many of them in an epoch as one likes."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Puzzles(Dataset):
    def __init__(self, length, seed=0):
        self.length, self.random = length, random.Random(seed)

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        numbers = torch.tensor([self.random.random() for _ in range(6)])
        return {"numbers": numbers, "largest": int(numbers.argmax())}


if __name__ == "__main__":
    torch.manual_seed(0)
    train_loader = DataLoader(Puzzles(96), batch_size=8, shuffle=True, num_workers=2)  # error: worker-randomness-duplicated
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 6))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(2):
        for batch in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch["numbers"]), batch["largest"])
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
