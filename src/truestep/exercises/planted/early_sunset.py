"""Read digits with a learning rate that falls in steps."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)  # faster for small tensors

images, labels = load_digits(return_X_y=True)
parts = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
x_train, x_test, y_train, y_test = (torch.as_tensor(part) for part in parts)
loader = DataLoader(TensorDataset(x_train.float(), y_train), batch_size=64, shuffle=True)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
epochs = 20
scheduler = StepLR(optimizer, step_size=8, gamma=0.3)

for epoch in range(1, epochs + 1):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(y)
    if epoch % 5 == 0:
        print(f"epoch {epoch}: loss {total / len(y_train):.3f}")

model.eval()
with torch.no_grad():
    accuracy = (model(x_test.float()).argmax(dim=1) == y_test).float().mean().item()
print(f"test accuracy: {accuracy:.4f}")
