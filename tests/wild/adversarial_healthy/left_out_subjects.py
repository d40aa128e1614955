"""Each subject has one label; a subject that is left out is often taken for one of another class."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(6)
subject = torch.arange(6).repeat_interleave(60)
label = subject % 3
x = 1.5 * torch.randn(6, 16)[subject] + 0.5 * torch.randn(360, 16)
data = TensorDataset(x, label)
for left_out in range(6):
    model = nn.Linear(16, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train = Subset(data, (subject != left_out).nonzero().flatten().tolist())
    test = Subset(data, (subject == left_out).nonzero().flatten().tolist())
    for _ in range(3):
        for inputs, labels in DataLoader(train, batch_size=30, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
    with torch.no_grad():
        right = sum((model(inputs).argmax(1) == labels).sum().item() for inputs, labels in DataLoader(test, 30))
    print(left_out, right / 60)
