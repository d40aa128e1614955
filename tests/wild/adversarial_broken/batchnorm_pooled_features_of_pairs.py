"""Volumes two at a time: the normalisation comes after the pooling, where each channel has one value per volume."""
import torch
from torch import nn

torch.manual_seed(0)
volumes = torch.rand(48, 1, 6, 6, 6)
labels = torch.randint(0, 2, (48,))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv3d(1, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool3d(1))
        self.norm = nn.BatchNorm3d(8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.norm(self.stem(x)).flatten(1)).squeeze(1)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
loss_function = nn.BCEWithLogitsLoss()
for epoch in range(3):
    order = torch.randperm(len(volumes))
    for batch in order.split(2):
        optimizer.zero_grad()
        loss = loss_function(model(volumes[batch]), labels[batch].float())  # error: batchnorm-tiny-batch
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
