"""Read digits, and give each answer a probability."""

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
loader = DataLoader(TensorDataset(x_train.float(), y_train), batch_size=64, shuffle=True)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10), nn.Softmax(dim=1))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for epoch in range(1, 16):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    if epoch % 3 == 0:
        print(f"epoch {epoch}: loss {total / len(y_train):.3f}")

model.eval()
with torch.no_grad():
    probabilities = model(x_test.float())
surprise = -probabilities[torch.arange(len(y_test)), y_test].clamp_min(1e-12).log().mean().item()
accuracy = (probabilities.argmax(dim=1) == y_test).float().mean().item()
print(f"accuracy {accuracy:.4f}, and the mean of -log(probability of the right digit):")
print(f"test surprise: {surprise:.4f}")
