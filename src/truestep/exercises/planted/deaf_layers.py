"""Read digits with a network of variable depth."""

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


class Reader(nn.Module):
    def __init__(self, depth, width=32):
        super().__init__()
        self.first = nn.Linear(64, width)
        self.hidden = [nn.Linear(width, width) for _ in range(depth)]
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = torch.relu(self.first(x))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.head(x)


model = Reader(depth=3)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(1, 26):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    if epoch % 5 == 0:
        print(f"epoch {epoch}: loss {total / len(y_train):.3f}")

model.eval()
with torch.no_grad():
    accuracy = (model(x_test.float()).argmax(dim=1) == y_test).float().mean().item()
print(f"test accuracy: {accuracy:.4f}")
