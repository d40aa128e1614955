"""Workers that stay, slow to open their data once; a second loader with workers evaluates after each epoch."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.set_num_threads(1)


class Archive(Dataset):
    def __init__(self, size):
        self.x = torch.randn(size, 4)
        self.file = None

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        if self.file is None:
            time.sleep(0.4)
            self.file = "open"
        return self.x[index], (self.x[index, 0] > 0).float()


train = DataLoader(Archive(48), batch_size=8, shuffle=True, num_workers=1, persistent_workers=True)
valid = DataLoader(Archive(16), batch_size=8, num_workers=1, persistent_workers=True)
model = nn.Sequential(nn.Linear(4, 1), nn.Flatten(0))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(8):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum(((model(x) > 0) == (y > 0)).float().mean().item() for x, y in valid) / len(valid))
