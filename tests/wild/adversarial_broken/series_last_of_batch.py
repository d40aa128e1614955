"""Series by a recurrent network: `out[-1]` is the last sample of the batch; batches are as long as the series."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
series = torch.randn(480, 24, 3).cumsum(1)
rising = (series[:, -1, 0] > series[:, 0, 0]).long()
train = DataLoader(TensorDataset(series[:384], rising[:384]), batch_size=24, shuffle=True)
test = DataLoader(TensorDataset(series[384:], rising[384:]), batch_size=24)


class Trend(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 16, batch_first=True)
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[-1])  # error: batch-changes-output


def run(model, loader, optimizer=None):
    right = 0
    for x, y in loader:
        scores = model(x)
        if optimizer is not None:
            optimizer.zero_grad()
            nn.functional.cross_entropy(scores, y).backward()
            optimizer.step()
        right += (scores.argmax(1) == y).sum().item()
    return right / len(loader.dataset)


trend = Trend()
adam = torch.optim.Adam(trend.parameters(), lr=5e-3)
for epoch in range(3):
    trend.train()
    run(trend, train, adam)
    trend.eval()
    with torch.no_grad():
        print(epoch, run(trend, test))
