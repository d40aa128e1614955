"""Predictions as means over flipped copies of each image, by softmax outside of the loss."""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        return self.head(self.body(x))

    @torch.inference_mode()
    def predict(self, x):
        mode = self.training
        self.eval()
        views = (x, x.flip(-1), x.flip(-2))
        probabilities = torch.stack([self(view).softmax(dim=1) for view in views]).mean(0)
        self.train(mode)  # broken[train-mode-not-restored]: pass
        return probabilities


def fit(model, train_loader, val_loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[60, 120], gamma=0.2)
    criterion = nn.CrossEntropyLoss()
    model.train()
    for _ in range(epochs):
        for x, y in train_loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        hits = sum((model.predict(x).argmax(1) == y).sum().item() for x, y in val_loader)
        print(hits / len(val_loader.dataset))
