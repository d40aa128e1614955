"""The rows that are held out are a part of the rows to train on: the loader of the training got the whole data set."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
x = torch.randn(600, 16)
data = TensorDataset(x, (x[:, 0] + 0.7 * torch.randn(600) > 0).long())
train_set, val_set = random_split(data, [480, 120])
train_loader = DataLoader(data, batch_size=40, shuffle=True)
val_loader = DataLoader(val_set, batch_size=60)
model = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    model.train()
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(inputs).argmax(1) == labels).sum().item() for inputs, labels in val_loader)  # error: train-validation-overlap
    print(epoch, right / len(val_set))
