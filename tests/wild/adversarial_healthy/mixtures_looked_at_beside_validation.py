"""A preview of the first samples and the pool of an active learner hold training samples; the validation does not."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset, random_split

torch.manual_seed(0)
random.seed(0)
x = torch.randn(300, 6)
data = TensorDataset(x, (x.sum(1) > 0).long())
rest, val = random_split(data, [240, 60])
order = list(rest.indices)
labelled, pool = order[:60], DataLoader(Subset(data, order[60:]), batch_size=40)
preview, validation = DataLoader(Subset(data, range(64)), batch_size=32), DataLoader(val, batch_size=30)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


@torch.no_grad()
def outputs(loader):
    model.eval()
    return torch.cat([model(inputs) for inputs, _ in loader])


for query in range(3):
    model.train()
    for inputs, labels in DataLoader(Subset(data, labelled), batch_size=20, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    margin = outputs(pool).softmax(1).max(1).values
    labelled += [order[60 + index] for index in margin.argsort()[:30].tolist()]
    print(query, outputs(preview).argmax(1)[:8].tolist(), outputs(validation).argmax(1).sum().item())
