import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)


class Digits(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = torch.tensor(images).float(), torch.tensor(labels)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index] / 16
        return image, self.labels[index]


images, labels = load_digits(return_X_y=True)
train, test = Digits(images[:1200], labels[:1200]), Digits(images[1200:], labels[1200:])
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(10):
    for x, y in DataLoader(train, batch_size=50, shuffle=True):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(test, batch_size=200))
print(f"result: {100 * right / len(test):.1f}")
