"""A convolutional network for images of 8 x 8 pixels."""

import torch
from torch import nn


class ConvNet(nn.Module):
    """Scores of ten classes for grey images: (batch, 1, 8, 8) becomes (batch, 10)."""

    def __init__(self) -> None:
        """Make at least two convolutions with fewer than 30,000 parameters in total."""
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Linear(32 * 2 * 2, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return logits, without a softmax: the loss applies it."""
        return self.head(self.features(images).flatten(1))
