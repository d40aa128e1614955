"""Distillation: a small network that never sees a three learns to read threes from its teacher.

    python distillation.py

Data: the digits of scikit-learn. The teacher is trained on all ten; the student has no image of a three.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=60)
parser.add_argument("--temperature", type=float, default=4.0)
args = parser.parse_args()

HIDDEN = 3

pixels, labels = load_digits(return_X_y=True)
order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(args.seed))
images, labels = torch.tensor(pixels, dtype=torch.float32)[order] / 16, torch.tensor(labels)[order]
split = 1300
train_set = TensorDataset(images[:split], labels[:split])
without_threes = TensorDataset(*(part[labels[:split] != HIDDEN] for part in train_set.tensors))
held_images, held_labels = images[split:], labels[split:]


def network(width):
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))


def train(model, data, loss_of, epochs):
    """Train a model on a loss of its scores, the images and the labels."""
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loader = DataLoader(data, batch_size=64, shuffle=True)
    model.train()
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss_of(model(x), x, y).backward()
            optimizer.step()
    model.eval()


def recalls(model):
    """Return the recall of the hidden digit and of the other digits on held-out images."""
    with torch.no_grad():
        correct = (model(held_images).argmax(dim=1) == held_labels).float()
    hidden = held_labels == HIDDEN
    return correct[hidden].mean().item(), correct[~hidden].mean().item()


def from_labels(scores, x, y):
    return nn.functional.cross_entropy(scores, y)


def from_teacher(scores, x, y):
    """Return the divergence from the teacher's probabilities, both softened by the temperature."""
    with torch.no_grad():
        softened = (teacher(x) / args.temperature).log_softmax(dim=1)
    own = (scores / args.temperature).log_softmax(dim=1)
    return args.temperature**2 * nn.functional.kl_div(own, softened, reduction="batchmean", log_target=True)


torch.manual_seed(args.seed)
teacher = network(256)
train(teacher, train_set, from_labels, epochs=20)
alone, taught = network(24), network(24)
taught.load_state_dict(alone.state_dict())
train(alone, without_threes, from_labels, args.epochs)
train(taught, without_threes, from_teacher, args.epochs)

for name, model in (("teacher", teacher), ("student alone", alone), ("student taught", taught)):
    threes, others = recalls(model)
    print(f"{name + ':':15} {threes:6.1%} of the threes recognised, {others:.1%} of the other digits")
