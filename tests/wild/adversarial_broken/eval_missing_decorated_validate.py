"""validate() has the decorator and forgets eval()."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Dropout(0.3))
        self.head = nn.Linear(8 * 36, 3)

    def forward(self, x):
        return self.head(self.body(x))


@torch.no_grad()
def validate(model, loader):
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum().item()  # error: eval-mode-missing
    return correct / len(loader.dataset)


train = DataLoader(TensorDataset(torch.randn(96, 1, 8, 8), torch.randint(0, 3, (96,))), batch_size=16, shuffle=True)
val = DataLoader(TensorDataset(torch.randn(48, 1, 8, 8), torch.randint(0, 3, (48,))), batch_size=16)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    print(epoch, validate(model, val))
