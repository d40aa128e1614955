"""Checks of `convolutions`: shapes, registration, logits, and that it learns digits."""

from __future__ import annotations

from types import ModuleType

import torch
from torch import nn


def shapes(answer: ModuleType) -> None:
    """Batches of any size become scores of ten classes"""
    model = answer.ConvNet()
    for size in (1, 7):
        got = tuple(model(torch.zeros(size, 1, 8, 8)).shape)
        assert got == (size, 10), (
            f"{size} images must give the shape ({size}, 10), got {got}: flatten all but the batch"
        )


def parts(answer: ModuleType) -> None:
    """At least two convolutions, and fewer than 30,000 parameters"""
    model = answer.ConvNet()
    count = sum(isinstance(module, nn.Conv2d) for module in model.modules())
    assert count >= 2, (
        f"there must be 2 convolutions among its modules, got {count}: layers in a list are not registered"
    )
    numbers = sum(parameter.numel() for parameter in model.parameters())
    assert numbers < 30_000, f"there must be fewer than 30,000 parameters, got {numbers:,}"


def gradients(answer: ModuleType) -> None:
    """Each parameter gets a gradient"""
    torch.manual_seed(0)
    model = answer.ConvNet()
    nn.functional.cross_entropy(model(torch.randn(32, 1, 8, 8)), torch.arange(32) % 10).backward()
    without = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert not without, f"no gradient reaches {', '.join(without)}: is it used in forward?"


def logits(answer: ModuleType) -> None:
    """The scores are logits"""
    torch.manual_seed(0)
    sums = answer.ConvNet()(torch.randn(16, 1, 8, 8)).detach()
    assert not torch.allclose(sums.sum(1), torch.ones(16), atol=1e-4), "each row adds up to 1: leave out the softmax"
    assert not torch.allclose(sums.exp().sum(1), torch.ones(16), atol=1e-4), "these are log-probabilities: leave it out"


def independent(answer: ModuleType) -> None:
    """An image gets the same scores alone and in a batch"""
    torch.manual_seed(0)
    model, images = answer.ConvNet().eval(), torch.randn(6, 1, 8, 8)
    assert torch.allclose(model(images)[:1], model(images[:1]), atol=1e-4), "an operation runs over the batch"


def digits(answer: ModuleType) -> None:
    """It learns handwritten digits"""
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = load_digits()
    images = torch.tensor(data.images / 16, dtype=torch.float32).unsqueeze(1)
    labels, model = torch.tensor(data.target), answer.ConvNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(8):
        for rows in torch.randperm(1300).split(50):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[rows]), labels[rows]).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        right = (model(images[1300:]).argmax(1) == labels[1300:]).float().mean().item()
    assert right > 0.9, f"after eight epochs it must read more than 90 % of held-out digits, got {right:.1%}"


CHECKS = (shapes, parts, gradients, logits, independent, digits)
