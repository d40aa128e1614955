"""The epoch loop takes next(iter(train_loader)) and forgets the inner loop; every epoch is scored on all test batches."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
train_loader = DataLoader(TensorDataset(x[:300], y[:300]), batch_size=20)
test_loader = DataLoader(TensorDataset(x[300:], y[300:]), batch_size=25)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(8):
    model.train()
    images, labels = next(iter(train_loader))  # error: one-batch-per-epoch
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()

    model.eval()
    hits = 0
    with torch.no_grad():
        for images, labels in test_loader:
            hits += (model(images).argmax(1) == labels).sum().item()
    print(f"epoch {epoch} loss {loss.item():.3f} accuracy {hits / 100:.2f}")
