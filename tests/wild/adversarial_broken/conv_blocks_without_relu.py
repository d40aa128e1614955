"""Repeated blocks of a convolution and a normalisation; the activation was lost when the block was written again."""
import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return self.norm(self.conv(x))  # error: layers-without-activation


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = Block(1, 8)
        self.blocks = nn.ModuleList([Block(8, 8), Block(8, 8)])
        self.head = nn.Linear(8, 4)

    def forward(self, images):
        x = torch.relu(self.stem(images))
        for block in self.blocks:
            x = block(x)
        return self.head(torch.relu(x).mean((2, 3)))


images = torch.randn(256, 1, 8, 8)
labels = (images[:, 0, :4].mean((1, 2)) > 0).long() + 2 * (images[:, 0, :, :4].mean((1, 2)) > 0).long()
net = Classifier()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for step in range(40):
    rows = torch.randint(0, 256, (32,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(images[rows]), labels[rows])
    loss.backward()
    optimizer.step()
print(loss.item())
