"""A line left from a test of memorisation shuffles the labels of each batch, under their own name."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(400, 1, 8, 8)
y = (x.mean((1, 2, 3)) > 0).long() + 2 * (x[:, 0, 0, 0] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

del x, y
for epoch in range(4):
    for images, labels in loader:
        labels = labels[torch.randperm(len(labels))]
        loss = criterion(model(images), labels)  # error: targets-of-other-samples
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
