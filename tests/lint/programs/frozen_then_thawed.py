"""Fine-tuning: first the head, then the whole network, each with its optimizer."""

import torch
import torchvision
from torch import nn


def stage(model, params, loader, epochs, lr):
    optimizer = torch.optim.SGD(params, lr=lr, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for _ in range(epochs):
        model.train()
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()


def main(loader, val_loader, classes):
    model = torchvision.models.resnet18(weights="DEFAULT")
    for parameter in model.parameters():
        parameter.requires_grad = False  # broken[freeze-without-effect]: parameter.require_grad = False
    model.fc = nn.Linear(model.fc.in_features, classes)
    stage(model, model.fc.parameters(), loader, 3, 1e-2)
    model.requires_grad_(True)
    stage(model, model.parameters(), loader, 10, 1e-3)
    model.eval()
    with torch.no_grad():
        correct = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
    torch.save(model.state_dict(), "model.pt")
    print(correct)
