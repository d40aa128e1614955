"""Read digits of which one is rare, with weights for the classes."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

RARE, KEPT = 8, 30

torch.manual_seed(0)
torch.set_num_threads(1)  # faster for small tensors

pixels, labels = load_digits(return_X_y=True)
order = torch.randperm(len(labels))
images, labels = torch.tensor(pixels, dtype=torch.float32)[order] / 16, torch.tensor(labels)[order]
held_images, held_labels = images[1300:], labels[1300:]

# Only thirty eights are kept for the training, beside about 130 images of each other digit.
rare = (labels[:1300] == RARE).nonzero().flatten()[KEPT:]
kept = torch.ones(1300, dtype=torch.bool).index_fill(0, rare, False)
train_set = TensorDataset(images[:1300][kept], labels[:1300][kept])
loader = DataLoader(train_set, batch_size=200, shuffle=True)

counts = train_set.tensors[1].bincount(minlength=10)
weights = 10 * counts / len(train_set)
criterion = nn.CrossEntropyLoss(weight=weights)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(1, 21):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 4 == 0:
        print(f"epoch {epoch}: loss {total / len(loader):.3f}")

model.eval()
with torch.no_grad():
    correct = (model(held_images).argmax(dim=1) == held_labels).float()
for digit in range(10):
    print(f"digit {digit}: {counts[digit]:3} images in the training, {correct[held_labels == digit].mean():.0%} right")
print(f"recall of the eights: {correct[held_labels == RARE].mean():.4f}")
