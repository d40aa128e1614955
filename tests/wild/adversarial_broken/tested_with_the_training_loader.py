"""A function gets the loader of the training for its test; the loader of the test is never read."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader, optimizer):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.nll_loss(model(x).log_softmax(1), y).backward()
        optimizer.step()


def test(model, loader):
    model.eval()
    loss = right = 0
    with torch.no_grad():
        for x, y in loader:  # error: train-validation-overlap
            output = model(x).log_softmax(1)
            loss += nn.functional.nll_loss(output, y, reduction="sum").item()
            right += (output.argmax(1) == y).sum().item()
    print(f"loss {loss / len(loader.dataset):.4f}, accuracy {right / len(loader.dataset):.3f}")


torch.manual_seed(0)
x = torch.randn(600, 20)
y = (x[:, 0] + torch.randn(600) > 0).long()
train_loader = DataLoader(TensorDataset(x[:400], y[:400]), batch_size=32, shuffle=True)
test_loader = DataLoader(TensorDataset(x[400:], y[400:]), batch_size=100)
model = nn.Sequential(nn.Linear(20, 100), nn.ReLU(), nn.Linear(100, 2))
optimizer = torch.optim.Adam(model.parameters(), 2e-3)
for epoch in range(5):
    train(model, train_loader, optimizer)
    test(model, train_loader)
