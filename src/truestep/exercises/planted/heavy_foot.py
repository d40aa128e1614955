"""Read digits in small batches, eight for each step."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)  # faster for small tensors

images, labels = load_digits(return_X_y=True)
parts = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
x_train, x_test, y_train, y_test = (torch.as_tensor(part) for part in parts)
loader = DataLoader(TensorDataset(x_train.float(), y_train), batch_size=8, shuffle=True, drop_last=True)

model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
accumulate = 8

for epoch in range(1, 16):
    model.train()
    total = 0.0
    for number, (x, y) in enumerate(loader, start=1):
        loss = criterion(model(x), y)
        loss.backward()
        total += loss.item()
        if number % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    if epoch % 3 == 0:
        print(f"epoch {epoch}: loss {total / len(loader):.3f}")

model.eval()
with torch.no_grad():
    accuracy = (model(x_test.float()).argmax(dim=1) == y_test).float().mean().item()
print(f"test accuracy: {accuracy:.4f}")
