"""Copies that share large parts, and samples that are the same."""

import threading

import numpy as np
import pytest
import torch
from PIL import Image

from truestep.loop.loading.dataset_probe import light_copy, same


class Holder:
    pass


def test_a_light_copy_shares_tensors_arrays_and_the_elements_of_long_lists():
    data = Holder()
    data.inner = Holder()
    data.inner.x, data.y = torch.zeros(3), np.zeros(3)
    data.names = [[number] for number in range(5000)]
    data.few = [[1], [2]]
    data.generator = np.random.default_rng(0)
    copied = light_copy(data)
    assert copied.inner is not data.inner
    assert copied.inner.x is data.inner.x
    assert copied.y is data.y
    assert copied.names is not data.names
    assert copied.names[0] is data.names[0]
    assert copied.few[0] is not data.few[0]
    assert copied.generator is not data.generator


def test_what_refers_to_itself_is_copied():
    data = Holder()
    data.own = [data]
    copied = light_copy(data)
    assert copied.own[0] is copied


def test_what_cannot_be_copied_gives_none():
    data = Holder()
    data.lock = threading.Lock()
    assert light_copy(data) is None


def test_too_much_to_copy_gives_none():
    data = Holder()
    data.trees = [[[float(i * j) for i in range(100)] for j in range(100)] for _ in range(2)]
    assert light_copy(data) is None


IMAGE = Image.new("L", (2, 2))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("nan")])),
        (torch.tensor(True), torch.tensor(True)),
        (np.array([1, 2]), np.array([1, 2])),
        ({"a": [1, "x", b"y", None]}, {"a": [1, "x", b"y", None]}),
        (float("nan"), float("nan")),
        (np.float64(2), np.float64(2)),
        (IMAGE, IMAGE.copy()),
        (object(), object()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_samples_that_are_alike_are_the_same(one, other):
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.tensor([1.0]), torch.tensor([2.0])),
        (torch.tensor([0.0]), torch.tensor([-0.0])),
        (torch.tensor([1]), torch.tensor([1.0])),
        (torch.zeros(2), torch.zeros(1, 2)),
        (np.array([1, 2]), np.array([1, 3])),
        ({"a": 1}, {"b": 1}),
        ([1, 2], [1]),
        ((1, "x"), (1, "y")),
        (1, 1.0),
        (1.0, 2.0),
        (np.float64(2), np.float64(3)),
        (IMAGE, Image.new("L", (2, 2), 5)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_samples_that_differ_are_not_the_same(one, other):
    assert not same(one, other)
