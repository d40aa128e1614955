"""Windows that grow from epoch to epoch, over batches drawn one ahead, the last window stepped on as it is."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def with_last(loader):
    iterator = iter(loader)
    ahead = next(iterator)
    for batch in iterator:
        yield ahead, False
        ahead = batch
    yield ahead, True


torch.manual_seed(0)
x = torch.randn(88, 4)
loader = DataLoader(TensorDataset(x, x.sum(dim=1)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(8):
    window = (2, 2, 4, 4, 4, 8, 8, 8)[epoch]
    for number, ((inputs, targets), last) in enumerate(with_last(loader), start=1):
        nn.functional.huber_loss(model(inputs), targets).mul(1 / window).backward()
        if number % window == 0 or last:
            optimizer.step()
            optimizer.zero_grad()
