"""Transforms that are assigned through a part of a split: the training loses its own, or it is meant."""

import pytest

from truestep.lint import lint

PROGRAM = """
import copy
import torch
from torch.utils.data import DataLoader, Dataset, Subset, random_split

class Pictures(Dataset):
    def __init__(self, pictures, labels, transform=None, augment=True):
        self.pictures, self.labels = pictures, labels
        self.transform = transform
        self.augment = augment

def main(pictures, labels, shake, plain, train, evaluate):
    {data}
    {split}
    {change}
    train_loader = DataLoader({training}, batch_size=16, shuffle=True)
    {after}
    train(train_loader)
    {later}
    evaluate(DataLoader(val_set, batch_size=64))
"""
DEFAULTS = {
    "data": "data = Pictures(pictures, labels, transform=shake)",
    "split": "train_set, val_set = random_split(data, [800, 200])",
    "change": "val_set.dataset.transform = None",
    "training": "train_set",
    "after": "pass",
    "later": "pass",
}
SWITCHED = "train_set.dataset.transform = shake\n    val_set.dataset.transform = plain"


def found(**parts):
    return [one.rule for one in lint(PROGRAM.format(**(DEFAULTS | parts)))]


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"data": "data = Pictures(pictures, labels, shake)"},
        {"change": "val_set.dataset.transform = plain"},
        {"change": "pass", "after": "val_set.dataset.transform = None"},
        {"data": "data = Pictures(pictures, labels)", "change": SWITCHED},
        {"data": "data = Pictures(pictures, labels, shake, True)", "change": "val_set.dataset.augment = False"},
        {"data": "data = Pictures(pictures, labels)\n    data.transform = shake"},
        {"split": "train_set = Subset(data, range(800))\n    val_set = Subset(data, range(800, 1000))"},
        {
            "split": "train_set, val_set, test_set = random_split(data, [700, 200, 100])",
            "change": "val_set.dataset.transform = None\n    test_set.dataset.transform = None",
        },
    ],
)
def test_the_training_loses_its_transform(parts):
    assert found(**parts) == ["augmentation-in-evaluation"]


@pytest.mark.parametrize(
    "parts",
    [
        {"change": "pass"},
        {"change": "pass", "later": "val_set.dataset.transform = None"},
        {"data": "data = Pictures(pictures, labels)"},
        {"data": "data = Pictures(pictures, labels, transform=plain)", "change": "val_set.dataset.transform = plain"},
        {"data": "data = Pictures(pictures, labels)", "change": "train_set.dataset.transform = shake"},
        {"data": "data = Pictures(pictures, labels)", "change": "val_set.dataset.transform = plain"},
        {"change": "val_set.dataset = copy.copy(data)\n    val_set.dataset.transform = None"},
        {"change": "val_set = copy.deepcopy(val_set)\n    val_set.dataset.transform = None"},
        {"change": "train_set.dataset.transform = val_set.dataset.transform = plain"},
        {"change": "val_set.dataset.transform = plain\n    train_set.dataset.transform = shake"},
        {"after": "train_set.dataset.transform = shake"},
        {"after": "for _ in range(3):\n        train_set.dataset.transform = shake"},
        {"training": "Pictures(train_set, labels, shake)"},
        {"change": "pass", "split": DEFAULTS["split"] + "\n    train(train_set)\n    val_set.dataset.transform = None"},
        {"change": "if plain:\n        val_set.dataset.transform = None"},
        {"change": "setattr(train_set.dataset, 'transform', shake)\n    val_set.dataset.transform = None"},
        {"change": "val_set.dataset.labels = labels"},
        {"data": "data, other = Pictures(pictures, labels, shake), Pictures(pictures, labels, shake)",
         "split": "train_set = Subset(data, range(800))\n    val_set = Subset(other, range(800, 1000))"},
    ],
)  # fmt: skip
def test_transforms_that_no_training_loses_are_quiet(parts):
    assert found(**parts) == []
