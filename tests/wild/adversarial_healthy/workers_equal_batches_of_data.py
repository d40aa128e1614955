"""Equal batches that the data itself holds: rows that repeat, a virtual length, blocks of equal rows, few values."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Longer(Dataset):
    """An epoch of several rounds over a small dataset."""

    def __init__(self, rows, times):
        self.rows, self.times = rows, times

    def __len__(self):
        return len(self.rows) * self.times

    def __getitem__(self, index):
        return self.rows[index % len(self.rows)]


if __name__ == "__main__":
    torch.manual_seed(0)
    rows = torch.randn(8, 4)
    blocks = torch.repeat_interleave(torch.eye(4), 16, dim=0)
    bits = (torch.arange(64) // 16 % 2).float()[:, None].expand(64, 4).clone()
    loaders = [
        DataLoader(Longer(rows, 8), batch_size=8, num_workers=2),
        DataLoader(TensorDataset(blocks), batch_size=8, num_workers=2),
        DataLoader(TensorDataset(bits), batch_size=8, num_workers=2, persistent_workers=True),
    ]
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for loader in loaders:
        for batch in loader:
            x = batch[0] if isinstance(batch, list) else batch
            optimizer.zero_grad()
            loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
            loss.backward()
            optimizer.step()
        print(loss.item())
