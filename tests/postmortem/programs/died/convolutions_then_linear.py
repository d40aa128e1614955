# says: `model.fc1` takes 784 numbers per sample and was given 9,216
# says: `x` (64, 9216) comes from here
# says: `in_features=9216`
import torch
from torch import nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.fc1 = nn.Linear(784, 128)  # related
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)  # related
        x = F.relu(self.fc1(x))  # died: shapes-do-not-fit
        return self.fc2(x)

model = Net()
for images in [torch.randn(64, 1, 28, 28)]:
    out = model(images)
