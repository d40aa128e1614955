"""Stochastic weight averaging by hand: running means of the state dict in the last third, BatchNorm statistics recomputed, both evaluated."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.fc = nn.Linear(16 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(x.flatten(1))


def batches(x, y, size=100):
    for index in torch.randperm(len(x)).split(size):
        yield x[index], y[index]


@torch.no_grad()
def recompute_statistics(model, x):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None
    model.train()
    for part in x.split(200):
        model(part)


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        logits = torch.cat([model(part) for part in x.split(150)])
    return (logits.argmax(1) == y).float().mean().item()


torch.manual_seed(0)
bunch = load_digits()
x, y = torch.tensor(bunch.images, dtype=torch.float32)[:, None] / 16, torch.tensor(bunch.target)
order = torch.randperm(len(x))
x_train, y_train, x_test, y_test = x[order[:1300]], y[order[:1300]], x[order[1300:]], y[order[1300:]]
model, swa = Net(), Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
averaged, epochs = 0, 9
for epoch in range(epochs):
    model.train()
    for xb, yb in batches(x_train, y_train):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
    if epoch >= epochs * 2 // 3:
        with torch.no_grad():
            for mean, p in zip(swa.parameters(), model.parameters()):
                mean.copy_((mean * averaged + p) / (averaged + 1))
        averaged += 1
recompute_statistics(swa, x_train)
print(f"loss {loss.item():.3f} last {evaluate(model, x_test, y_test):.3f} average of {averaged} {evaluate(swa, x_test, y_test):.3f}")
