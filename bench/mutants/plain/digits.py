"""Handwritten digits with an average of the weights, top-3, a checkpoint in a file and a test at the end: a class."""

import copy
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.fc1, self.fc2 = nn.Linear(256, 64), nn.Linear(64, 10)
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.fc2(self.drop(F.relu(self.fc1(x.flatten(1)))))


class Average:
    def __init__(self, model, decay):
        self.model, self.decay = copy.deepcopy(model).eval(), decay

    @torch.no_grad()
    def update(self, model):
        for slow, fast in zip(self.model.state_dict().values(), model.state_dict().values()):
            if slow.dtype.is_floating_point:
                slow.mul_(self.decay).add_(fast, alpha=1 - self.decay)
            else:
                slow.copy_(fast)


class Experiment:
    def __init__(self, folder):
        digits = load_digits()
        images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
        labels = torch.tensor(digits.target)
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
        parts = order[:1100], order[1100:1400], order[1400:]
        self.train, self.valid, self.test = [(images[part], labels[part]) for part in parts]
        self.model = Net()
        self.average = Average(self.model, 0.95)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 0.1, total_steps=8 * 18)
        self.path, self.best = Path(folder, "best.pt"), 0.0

    def batches(self, part, size, shuffle):
        images, labels = part
        order = torch.randperm(len(images)) if shuffle else torch.arange(len(images))
        for picked in order.split(size):
            yield images[picked], labels[picked]

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            for images, labels in self.batches(self.train, 64, True):
                loss = F.cross_entropy(self.model(images), labels, label_smoothing=0.05)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.schedule.step()
                self.average.update(self.model)
            loss, top1, top3 = self.measure(self.average.model, self.valid)
            print(f"epoch {epoch} loss {loss:.4f} top1 {top1:.4f} top3 {top3:.4f}")
            if top1 > self.best:
                self.best = top1
                torch.save(self.average.model.state_dict(), self.path)

    @torch.no_grad()
    def measure(self, model, part):
        model.eval()
        total, top1, top3, count = 0.0, 0, 0, 0
        for images, labels in self.batches(part, 128, False):
            logits = model(images)
            total += F.cross_entropy(logits, labels, reduction="sum").item()
            top1 += (logits.argmax(dim=1) == labels).sum().item()
            top3 += (logits.topk(3, dim=1).indices == labels.unsqueeze(1)).sum().item()
            count += len(labels)
        return total / count, top1 / count, top3 / count

    def report(self):
        model = Net()
        model.load_state_dict(torch.load(self.path, weights_only=True))
        loss, top1, top3 = self.measure(model, self.test)
        print(f"test loss {loss:.4f} top1 {top1:.4f} top3 {top3:.4f}")


def main():
    torch.manual_seed(6)
    with tempfile.TemporaryDirectory() as folder:
        experiment = Experiment(folder)
        experiment.fit(8)
        experiment.report()


main()
