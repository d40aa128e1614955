"""The head is replaced after the optimizer was built."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.fc = nn.Linear(8, 100)

    def forward(self, x):
        return self.fc(self.features(x))


def build():
    model = Backbone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)  # error: optimizer-holds-stale-parameters
    model.fc = nn.Linear(8, 5)
    return model, optimizer


model, optimizer = build()
loader = DataLoader(TensorDataset(torch.randn(96, 3, 8, 8), torch.randint(0, 5, (96,))), batch_size=8, shuffle=True)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
