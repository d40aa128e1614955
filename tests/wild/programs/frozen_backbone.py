"""Healthy: transfer learning: backbone frozen with requires_grad False and kept in eval mode, new head trained."""
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


class ConvBackbone(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(2 * width)
        self.fc = nn.Linear(2 * width, 10)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(self.bn2(self.conv2(x)))
        return self.fc(x.mean((2, 3)))


def stripes(n, classes):
    """Images of stripes; the class is the frequency."""
    y = torch.randint(0, classes, (n,))
    pos = torch.arange(12.0)
    img = torch.sin(pos * (0.4 + 0.6 * y[:, None]) + 6 * torch.rand(n, 1))
    img = img[:, None, None, :].expand(n, 1, 12, 12)
    return TensorDataset(img + 0.2 * torch.randn(n, 1, 12, 12), y)


def fit(model, optimizer, loader, epochs, set_mode):
    criterion = nn.CrossEntropyLoss()
    for _ in range(epochs):
        set_mode()
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()


# "pretraining" on ten classes
model_conv = ConvBackbone()
fit(model_conv, optim.Adam(model_conv.parameters(), lr=3e-3),
    DataLoader(stripes(320, 10), batch_size=32, shuffle=True), 2, model_conv.train)

# feature extraction on three classes
for param in model_conv.parameters():
    param.requires_grad = False
num_ftrs = model_conv.fc.in_features
model_conv.fc = nn.Linear(num_ftrs, 3)  # parameters of new modules have requires_grad=True


def head_mode():
    model_conv.eval()
    model_conv.fc.train()


optimizer_conv = optim.SGD(model_conv.fc.parameters(), lr=0.1, momentum=0.9)
fit(model_conv, optimizer_conv, DataLoader(stripes(192, 3), batch_size=32, shuffle=True), 5, head_mode)

model_conv.eval()
test_loader = DataLoader(stripes(120, 3), batch_size=60)
with torch.no_grad():
    correct = sum((model_conv(x).argmax(1) == y).sum().item() for x, y in test_loader)
print("Accuracy of the new head: {:.3f}".format(correct / 120))
