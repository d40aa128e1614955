"""Two parts only: the best epoch is chosen by the test samples, and its figure on them is printed as that of a test."""
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def evaluate(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for rows, labels in loader:
            right += (model(rows).argmax(1) == labels).sum().item()
            total += len(labels)
    return right / total


def main():
    torch.manual_seed(0)
    rows = torch.randn(500, 12)
    labels = (rows[:, :3].sum(1) + torch.randn(500) > 0).long()
    train_loader = DataLoader(TensorDataset(rows[:400], labels[:400]), batch_size=32, shuffle=True)
    test_loader = DataLoader(TensorDataset(rows[400:], labels[400:]), batch_size=50)
    model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    best_accuracy, best_state = 0.0, None
    for _epoch in range(20):
        model.train()
        for batch, wanted in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(batch), wanted).backward()
            optimizer.step()
        accuracy = evaluate(model, test_loader)
        if accuracy > best_accuracy:  # error: chosen-without-validation
            best_accuracy = accuracy
            best_state = copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    print(f"test accuracy {evaluate(model, test_loader):.3f}")


main()
