"""Three tasks with a loader each; their losses are added up by one backward line in a loop over tasks."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)


class MultiTask(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.heads = nn.ModuleDict({t: nn.Linear(32, 2) for t in tasks})

    def forward(self, x, task):
        return self.heads[task](self.trunk(x))


def make(seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(160, 8, generator=g)
    y = (x[:, seed] > 0).long()
    return DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)


loaders = {"a": make(0), "b": make(1), "c": make(2)}
model = MultiTask(loaders)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
criterion = nn.CrossEntropyLoss()

for epoch in range(3):
    iterators = {t: iter(loader) for t, loader in loaders.items()}
    for _ in range(10):
        optimizer.zero_grad()
        for task, iterator in iterators.items():
            x, y = next(iterator)
            loss = criterion(model(x, task), y)
            loss.backward()
        optimizer.step()
    print(epoch, loss.item())
