"""Label smoothing: digits of which a fifth has a random label, and a network that follows wrong labels less.

    python label_smoothing.py

Data: the digits of scikit-learn; a fifth of the training labels is replaced by a random digit.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=60)
parser.add_argument("--smoothing", type=float, default=0.1)
args = parser.parse_args()

chance = torch.Generator().manual_seed(args.seed)
pixels, labels = load_digits(return_X_y=True)
order = torch.randperm(len(labels), generator=chance)
images, labels = torch.tensor(pixels, dtype=torch.float32)[order] / 16, torch.tensor(labels)[order]
split = 1300
held_images, held_labels = images[split:], labels[split:]

wrong = torch.rand(split, generator=chance) < 0.2
noisy = torch.where(wrong, torch.randint(10, (split,), generator=chance), labels[:split])
train_set = TensorDataset(images[:split], noisy)


def calibration_error(sure, correct, bins=10):
    """Return the mean distance between confidence and accuracy, over bins of confidence weighted by their size."""
    bin_of = (sure * bins).long().clamp(max=bins - 1)
    gaps = [(sure[bin_of == b].mean() - correct[bin_of == b].float().mean()).abs() for b in bin_of.unique()]
    shares = [(bin_of == b).float().mean() for b in bin_of.unique()]
    return sum(gap * share for gap, share in zip(gaps, shares, strict=True)).item()


def train(smoothing):
    """Return accuracy, calibration error and loss on held-out images with correct labels."""
    torch.manual_seed(args.seed)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss(label_smoothing=smoothing)
    loader = DataLoader(train_set, batch_size=64, shuffle=True)
    for _ in range(args.epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()

    model.eval()
    with torch.no_grad():
        scores = model(held_images)
        loss = nn.functional.cross_entropy(scores, held_labels).item()  # measured without smoothing
    sure, guess = scores.softmax(dim=1).max(dim=1)
    correct = guess == held_labels
    return correct.float().mean().item(), calibration_error(sure, correct), loss


for name, smoothing in (("without smoothing", 0.0), (f"with smoothing {args.smoothing}", args.smoothing)):
    accuracy, error, loss = train(smoothing)
    print(f"{name + ':':20} loss {loss:.3f}, accuracy {accuracy:.1%}, calibration error {error:.1%}")
