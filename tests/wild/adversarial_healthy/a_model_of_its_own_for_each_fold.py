"""The folds take turns in each epoch: all models are built first, and each one is trained and validated on its part."""

import torch
from sklearn.model_selection import KFold
from torch import nn
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset

torch.manual_seed(0)
FOLDS, EPOCHS = 3, 4

x = torch.randn(240, 6)
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()
dataset = TensorDataset(x, y)


def train(model, loader, optimizer):
    model.train()
    for rows, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(rows), labels)
        loss.backward()
        optimizer.step()


def validate(model, loader):
    model.eval()
    correct, total = 0, 0
    with torch.no_grad():
        for rows, labels in loader:
            correct += (model(rows).argmax(1) == labels).sum().item()
            total += len(labels)
    return correct / total


models = [nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Dropout(0.1), nn.Linear(24, 2)) for _ in range(FOLDS)]
optimizers = [torch.optim.Adam(model.parameters(), lr=1e-2) for model in models]
for epoch in range(EPOCHS):
    accuracy = 0.0
    for fold, (train_ids, val_ids) in enumerate(KFold(FOLDS).split(dataset)):
        train_loader = DataLoader(dataset, batch_size=32, sampler=SubsetRandomSampler(train_ids))
        val_loader = DataLoader(dataset, batch_size=32, sampler=SubsetRandomSampler(val_ids))
        train(models[fold], train_loader, optimizers[fold])
        accuracy += validate(models[fold], val_loader)
    print(f"epoch {epoch}: {accuracy / FOLDS:.3f}")
