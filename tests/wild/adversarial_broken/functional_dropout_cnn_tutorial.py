"""A convolutional net as in an old tutorial: both dropouts are functions, one of them knows the mode."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 3), nn.Conv2d(6, 8, 3)
        self.fc1, self.fc2 = nn.Linear(8 * 2 * 2, 24), nn.Linear(24, 3)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(F.dropout2d(self.conv2(x), 0.2, self.training), 2))
        x = F.relu(self.fc1(x.flatten(1)))
        x = F.dropout(x)  # error: functional-dropout-always-on
        return F.log_softmax(self.fc2(x), dim=1)


def data(n):
    labels = torch.randint(0, 3, (n,))
    return TensorDataset(torch.rand(n, 1, 14, 14) + labels[:, None, None, None] / 3, labels)


def test(model, loader):
    model.eval()
    loss = correct = 0
    with torch.no_grad():
        for images, labels in loader:
            output = model(images)
            loss += F.nll_loss(output, labels, reduction="sum").item()
            correct += (output.argmax(1) == labels).sum().item()
    print(f"loss {loss / len(loader.dataset):.3f}, right {correct}/{len(loader.dataset)}")


train_loader = DataLoader(data(160), 16, shuffle=True)
test_loader = DataLoader(data(64), 16)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
for epoch in range(3):
    model.train()
    for images, labels in train_loader:
        optimizer.zero_grad()
        F.nll_loss(model(images), labels).backward()
        optimizer.step()
    test(model, test_loader)
test(model, test_loader)
