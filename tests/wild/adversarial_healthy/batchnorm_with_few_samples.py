"""Two samples for batch normalisation, and nothing wrong: ragged ends, one pooled branch, frozen layers, a sanity check."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
pictures, labels = torch.rand(50, 3, 8, 8), torch.randint(0, 3, (50,))


class Pyramid(nn.Module):
    """A branch behind a global pooling has one value per picture; the others have many."""

    def __init__(self):
        super().__init__()
        self.near = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU())
        self.pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(3, 6, 1), nn.BatchNorm2d(6), nn.ReLU())
        self.head = nn.Conv2d(12, 3, 1)

    def forward(self, x):
        pooled = self.pooled(x).expand(-1, -1, *x.shape[2:])
        return self.head(torch.cat([self.near(x), pooled], 1)).mean((2, 3))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))


def fit(model, loader, epochs, frozen=False):
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(epochs):
        model.train()
        if frozen:
            for layer in model.modules():
                if isinstance(layer, nn.BatchNorm1d):
                    layer.eval()
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(type(model).__name__, epoch, loss.item())


data = TensorDataset(pictures, labels)
fit(Pyramid(), DataLoader(data, 2, shuffle=True), 1)
net = mlp()
fit(net, DataLoader(data, 12, shuffle=True), 6)
fit(net, DataLoader(data, 2, shuffle=True), 1, frozen=True)

check = mlp()
x, y = pictures[:2], labels[:2]
optimizer = torch.optim.Adam(check.parameters(), 1e-2)
for step in range(25):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(check(x), y)
    loss.backward()
    optimizer.step()
print("learns two samples by heart", loss.item())
