# a test set of another hospital, brighter on purpose (domain shift); validation in the domain of the training
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
def make(n, bright=0.0):
    y = torch.randint(0, 3, (n,))
    im = torch.rand(n, 1, 12, 12) * .3
    for k in range(3): im[y == k, :, 3 * k:3 * k + 4, 2:10] += .3
    im = ((im * 255).round() / 255 + bright).clamp(0, 1)
    return im, y
train_loader = DataLoader(TensorDataset(*make(1200)), 64, shuffle=True)
val_loader = DataLoader(TensorDataset(*make(300)), 100)
test_loader = DataLoader(TensorDataset(*make(300, bright=0.25)), 100)   # scanner B
net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.InstanceNorm2d(8, affine=True), nn.ReLU(), nn.Flatten(), nn.Linear(800, 3))
opt = torch.optim.Adam(net.parameters(), 1e-3)
def accuracy(loader):
    net.eval(); right = total = 0
    with torch.no_grad():
        for x, y in loader:
            right += (net(x).argmax(1) == y).sum().item(); total += len(y)
    return right / total
for ep in range(6):
    net.train()
    for x, y in train_loader:
        opt.zero_grad(); nn.functional.cross_entropy(net(x), y).backward(); opt.step()
    print(ep, accuracy(val_loader))
print("other hospital", accuracy(test_loader))
