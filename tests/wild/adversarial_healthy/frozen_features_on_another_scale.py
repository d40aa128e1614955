"""A trained network becomes a frozen extractor for a second task, with brighter pictures on purpose."""
import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
digits = load_digits()
pictures = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
labels = torch.tensor(digits.target)
order = torch.randperm(len(labels))
train, held = order[:1200], order[1200:]
features = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten())
digit, odd = nn.Linear(48, 10), nn.Sequential(nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 2))


def accuracy(head, shown, wanted):
    features.eval()
    head.eval()
    with torch.no_grad():
        return (head(features(shown)).argmax(1) == wanted).float().mean().item()


optimizer = torch.optim.Adam([*features.parameters(), *digit.parameters()], lr=3e-3)
for _epoch in range(4):
    features.train()
    digit.train()
    for rows in train[torch.randperm(len(train))].split(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(digit(features(pictures[rows])), labels[rows]).backward()
        optimizer.step()
    print(accuracy(digit, pictures[held], labels[held]))

features.requires_grad_(False)
bright = 0.6 + 0.8 * pictures
optimizer = torch.optim.Adam(odd.parameters(), lr=3e-3)
for _epoch in range(6):
    features.eval()
    odd.train()
    for rows in train[torch.randperm(len(train))].split(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(odd(features(bright[rows])), labels[rows] % 2).backward()
        optimizer.step()
    print(accuracy(odd, bright[held], labels[held] % 2))
