"""Inputs of convolutions are read again in other orders of their axes: images are smooth in one, and classes exact."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F

from truestep import events as ev
from truestep.testing import capture_events


@pytest.fixture
def images():
    noise = torch.randn(16, 3, 32, 36, generator=torch.Generator().manual_seed(1))
    return F.avg_pool2d(noise, 5, 1)


@pytest.fixture
def classes():
    drawn = torch.randint(0, 4, (16, 40), generator=torch.Generator().manual_seed(1))
    return F.one_hot(drawn, 4).float()


def read(given, model=None):
    """Return the comparisons of three steps of a training."""
    conv = nn.Conv2d if given.dim() == 4 else nn.Conv1d
    model = conv(given.shape[1], 2, 3) if model is None else model
    with capture_events() as events:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(given).square().mean().backward()
            optimizer.step()
    return [event for event in events if isinstance(event, ev.AxesRead)]


def test_images_in_the_right_order_are_smoother_than_in_others(images):
    found = read(images)
    assert len(found) == 3
    assert all(one.rough < 0.6 * one.smooth and one.most < 1 for one in found)
    assert found[0].shape == (3, 28, 32)
    assert found[0].view is None


def test_channels_stored_last_and_viewed_in_front(images):
    stored = images.permute(0, 2, 3, 1).contiguous()
    (found, *_) = read(stored.reshape(-1, 3, 28, 32))
    assert found.order == "height, width, channel"
    assert found.rough > 1.8 * found.smooth
    assert found.most > 1.5


def test_channels_stored_in_front_and_read_as_last(images):
    (found, *_) = read(images.reshape(-1, 28, 32, 3).permute(0, 3, 1, 2))
    assert found.order == "channel, height, width"
    assert found.rough > 1.8 * found.smooth


def test_the_only_view_with_these_sizes_is_named(images, tmp_path):
    stored, model = images.permute(0, 2, 3, 1).contiguous(), nn.Conv2d(3, 2, 3)
    code = "def call(model, x):\n    x = x.view(len(x), 3, 28, 32)\n    model(x).sum().backward()\n"
    one, two = (stored_call(tmp_path / name, code * times) for name, times in (("one.py", 1), ("two.py", 2)))
    with capture_events() as events:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for call in (one, two):
            call(model, stored)
            optimizer.step()
    views = [event.view for event in events if isinstance(event, ev.AxesRead)]
    assert [None if view is None else view.line for view in views] == [2, None]


def stored_call(path, code):
    """Return the function of a file that is written for the test."""
    path.write_text(code)
    space = {}
    exec(compile(code, str(path), "exec"), space)
    return space["call"]


def test_classes_are_judged_exactly(classes):
    assert {one.order for one in read(classes.transpose(1, 2))} == {""}
    scrambled = read(classes.reshape(16, 4, 40))
    assert {one.order for one in scrambled} == {"height, width, channel"}
    assert all(one.classes for one in scrambled)
    assert read((torch.rand(16, 4, 40) < 0.25).float()) == []


@pytest.mark.parametrize(
    "given",
    [torch.ones(16, 3, 16, 16), torch.rand(16, 5, 16, 16), torch.rand(2, 3, 16, 16), torch.rand(16, 3, 6, 6)],
    ids=["constant", "many channels", "few images", "small"],
)
def test_other_inputs_are_not_read(given):
    assert read(given) == []


def test_a_model_without_neighbours_is_not_read(images):
    model = nn.Sequential(nn.Conv2d(3, 2, 1), nn.Flatten(), nn.Linear(2 * 28 * 32, 2))
    assert read(images, model) == []
