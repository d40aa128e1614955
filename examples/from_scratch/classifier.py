"""Train a perceptron on scikit-learn's digits, 8 x 8 pixels, with only the pieces of this folder.

python examples/from_scratch/classifier.py             # gradients from loss.backward()
python examples/from_scratch/classifier.py --by-hand   # gradients from backpropagation.py
"""

import argparse

import torch
from adamw import AdamW
from backpropagation import backward
from clip import clip_by_global_norm
from cross_entropy import cross_entropy
from linear import Linear
from loader import Loader
from relu import relu
from sklearn.datasets import load_digits
from torch import nn
from warmup_cosine import warmup_cosine


class Perceptron(nn.Module):
    """Two linear layers, and a ReLU between them."""

    def __init__(self, hidden=128):
        super().__init__()
        self.first = Linear(64, hidden)
        self.second = Linear(hidden, 10)

    def forward(self, x):
        return self.second(relu(self.first(x)))


def digits():
    """Return images in [0, 1], (1797, 64), and their labels, in a random order that is always the same."""
    pixels, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    return torch.tensor(pixels, dtype=torch.float32)[order] / 16, torch.tensor(labels)[order]


def accuracy(model, x, y):
    """Return the share of images with the largest score at the right class."""
    with torch.no_grad():
        return (model(x).argmax(dim=1) == y).float().mean().item()


def train(model, loader, epochs, lr=1e-2, by_hand=False):
    """Train a model; yield the mean loss of each epoch."""
    optimizer = AdamW(model.parameters(), lr)
    step, total = 0, epochs * len(loader)
    for _ in range(epochs):
        losses = []
        for x, y in loader:
            optimizer.zero_grad()
            if by_hand:
                with torch.no_grad():
                    loss = backward(x, y, model.first, model.second)
            else:
                loss = cross_entropy(model(x), y)
                loss.backward()
            clip_by_global_norm(model.parameters(), max_norm=1.0)
            optimizer.lr = warmup_cosine(step, lr, warmup_steps=total // 10, total_steps=total)
            optimizer.step()
            losses.append(loss.detach())
            step += 1
        yield torch.stack(losses).mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--by-hand", action="store_true", help="compute the gradients without autograd")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    images, labels = digits()
    held_out = images[1347:], labels[1347:]
    loader = Loader(images[:1347], labels[:1347], batch_size=64, shuffle=True)
    model = Perceptron()
    for epoch, loss in enumerate(train(model, loader, args.epochs, by_hand=args.by_hand)):
        print(f"epoch {epoch + 1:2d}: loss {loss:.4f}, held-out accuracy {accuracy(model, *held_out):.2%}")
