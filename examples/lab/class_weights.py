"""Class weights: recognise the eights among digits, of which the training set has only ten.

    python class_weights.py

Data: the digits of scikit-learn; the training set keeps ten eights beside some 1,200 images of the other digits.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=20)
args = parser.parse_args()

RARE, KEPT = 8, 10

pixels, labels = load_digits(return_X_y=True)
order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(args.seed))
images = torch.tensor(pixels, dtype=torch.float32)[order] / 16
labels = torch.tensor(labels)[order]
split = 1300
held_images, held_labels = images[split:], labels[split:]

rare = (labels[:split] == RARE).nonzero().flatten()[KEPT:]
kept = torch.ones(split, dtype=torch.bool).index_fill(0, rare, False)
train_set = TensorDataset(images[:split][kept], labels[:split][kept])
counts = train_set.tensors[1].bincount(minlength=10)

weights = len(train_set) / (10 * counts)  # 1 for a class with a tenth of the images
print(f"{counts[RARE]} eights of {len(train_set)} images: weight {weights[RARE]:.1f}, the others {weights[0]:.2f}")


def train(weight):
    """Return the recall of the rare digit and the mean recall of all digits on held-out images."""
    torch.manual_seed(args.seed)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss(weight=weight)
    loader = DataLoader(train_set, batch_size=64, shuffle=True)
    for _ in range(args.epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()

    model.eval()
    with torch.no_grad():
        correct = model(held_images).argmax(dim=1) == held_labels
    recalls = [correct[held_labels == digit].float().mean().item() for digit in range(10)]
    return recalls[RARE], sum(recalls) / 10


for name, weight in (("without weights", None), ("with weights", weights)):
    recall, balanced = train(weight)
    print(f"{name + ':':16} {recall:6.1%} of the eights recognised, mean over the digits {balanced:.1%}")
