"""Healthy: CIFAR-repository style: train/test functions, MultiStepLR stepped once per epoch, all milestones inside the run."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class BasicBlock(nn.Module):
    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Sequential(nn.Conv2d(in_planes, planes, 1, stride=stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + self.shortcut(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = BasicBlock(3, 8)
        self.layer2 = BasicBlock(8, 16, 2)
        self.linear = nn.Linear(16, 4)

    def forward(self, x):
        return self.linear(self.layer2(self.layer1(x)).mean((2, 3)))


def textures(n):
    y = torch.randint(0, 4, (n,))
    r = torch.arange(8)
    patterns = torch.stack([(r % 2)[:, None].expand(8, 8), (r % 2)[None].expand(8, 8), (r[:, None] + r) % 2, (r[:, None] // 2 + r // 2) % 2])
    x = (patterns[y].float() - 0.5)[:, None] * torch.rand(n, 3, 1, 1) * 2 + 0.6 * torch.randn(n, 3, 8, 8)
    return torch.utils.data.TensorDataset(x, y)


parser = argparse.ArgumentParser(description="PyTorch textures training")
parser.add_argument("--lr", default=0.1, type=float, help="learning rate")
args = parser.parse_args()

torch.manual_seed(0)
torch.set_num_threads(1)
trainloader = torch.utils.data.DataLoader(textures(512), batch_size=64, shuffle=True)
testloader = torch.utils.data.DataLoader(textures(128), batch_size=64, shuffle=False)
net = Net()
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)
scheduler = optim.lr_scheduler.MultiStepLR(optimizer, milestones=[3, 5], gamma=0.1)


def train(epoch):
    net.train()
    train_loss = correct = total = 0
    for batch_idx, (inputs, targets) in enumerate(trainloader):
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
        _, predicted = outputs.max(1)
        total += targets.size(0)
        correct += predicted.eq(targets).sum().item()
    print("Epoch %d Loss: %.3f | Acc: %.3f%% (%d/%d)" % (epoch, train_loss / (batch_idx + 1), 100.0 * correct / total, correct, total))


def test(epoch):
    net.eval()
    correct = total = 0
    with torch.no_grad():
        for inputs, targets in testloader:
            correct += net(inputs).argmax(1).eq(targets).sum().item()
            total += targets.size(0)
    return 100.0 * correct / total


for epoch in range(6):
    train(epoch)
    acc = test(epoch)
    scheduler.step()
print("test acc %.2f, last lr %g" % (acc, scheduler.get_last_lr()[0]))
