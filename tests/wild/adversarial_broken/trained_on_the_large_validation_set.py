"""The loop reads the loader of the validation, which has more samples than that of the training."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1500, 10)
y = (x[:, :4].sum(1) > 0).long()
training = DataLoader(TensorDataset(x[:300], y[:300]), batch_size=30, shuffle=True)
validation = DataLoader(TensorDataset(x[300:], y[300:]), batch_size=100)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(4):
    model.train()
    for inputs, labels in validation:  # error: training-on-evaluation-data
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(inputs).argmax(1) == labels).float().sum().item() for inputs, labels in validation)
    print(epoch, right / 1200)
