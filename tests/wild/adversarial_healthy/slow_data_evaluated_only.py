"""A trained model scores slow data: nothing but waiting, and nothing is trained meanwhile."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Slow(Dataset):
    def __len__(self):
        return 120

    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.full((4,), index / 120)


model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.rand(64, 4)
for step in range(30):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True)).backward()
    optimizer.step()
model.eval()
with torch.inference_mode():
    print(torch.cat([model(batch) for batch in DataLoader(Slow(), batch_size=10)]).mean().item())
