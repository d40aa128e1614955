# says: `classifier.0` takes 4,096 numbers per sample and was given 1,024
# says: in_features=1024
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4))
        self.classifier = nn.Sequential(nn.Linear(4096, 64), nn.ReLU(), nn.Linear(64, classes))

    def forward(self, x):
        x = self.features(x)
        x = x.view(x.size(0), -1)  # related
        return self.classifier(x)  # died: shapes-do-not-fit


Net()(torch.randn(2, 3, 32, 32))
