# says: `net.1` was given one sample
# says: or call `.eval()` on the model
import torch
from torch import nn
from torch.utils.data import DataLoader


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.full((4,), float(index))


net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
loader = DataLoader(Rows(), batch_size=4)
for rows in loader:
    for row in rows:
        net(row[None])  # died: batch-of-one
