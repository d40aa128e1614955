"""The levels of values show how they were scaled; a scaling with own statistics shows in the values themselves."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn

from truestep import events as ev
from truestep.probes.forward.inputs.levels import levels_of, scaled_by_itself
from truestep.testing import capture_events


@pytest.fixture
def pixels():
    return (256 * torch.rand(32, 3, 12, 12, generator=torch.Generator().manual_seed(1)).square()).floor()


def distances(given):
    return [round(one.distance, 4) for one in levels_of(torch, given)]


def test_channels_have_the_levels_of_their_own_scale(pixels):
    std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
    assert distances(pixels / 255) == [0.0039] * 3
    assert distances(pixels / 255 / std) == [0.0171, 0.0175, 0.0174]
    assert distances((pixels / 255 / std).permute(0, 2, 3, 1)) == [0.0171, 0.0175, 0.0174]


def test_a_subtracted_mean_shows_in_the_offset(pixels):
    assert {one.offset for one in levels_of(torch, pixels / 255)} == {0.0}
    assert {one.offset for one in levels_of(torch, pixels / 255 - 0.5)} == {0.5}


def test_columns_are_read_alone_where_all_values_together_have_no_levels():
    rows = (70 * torch.randn(64, 3, generator=torch.Generator().manual_seed(1))).round() / 10
    scaled = (rows - rows.mean(0)) / torch.tensor([1.0, 2.0, 3.3])
    found = levels_of(torch, scaled)
    assert [one.part for one in found] == ["feature 0", "feature 1", "feature 2"]
    assert [round(one.distance, 4) for one in found] == [0.1, 0.05, 0.0303]


def test_zeros_of_padding_are_no_levels(pixels):
    padded = (pixels / 255 - 0.4567) / 0.25
    padded[:, :, :3] = 0
    assert distances(padded) == [0.0157] * 3


def test_measured_numbers_and_noise_have_no_levels(pixels):
    torch.manual_seed(0)
    for given in (
        torch.rand(64, 10),
        torch.randn(64, 3, 8, 8),
        pixels + 0.1 * torch.randn_like(pixels),
        torch.ones(64),
    ):
        assert distances(given) == [0.0]


def test_points_at_equal_distances_are_known_as_chosen():
    """A model of a curve is called beyond the range of its training on purpose."""
    points = torch.linspace(-1, 1, 160)
    plane = torch.cartesian_prod(points[::8], points[::8])
    for given in (points[:, None], points[torch.randperm(160)[:40], None], plane, plane[torch.randint(400, (300,))]):
        assert all(one.even for one in levels_of(torch, given))


def test_own_statistics_of_samples_and_of_batches(pixels):
    each = (1, 2, 3)
    sample = (pixels - pixels.mean(each, keepdim=True)) / pixels.std(each, keepdim=True)
    batch = (pixels - pixels.mean()) / pixels.std(correction=0)
    channel = (pixels - pixels.mean((0, 2, 3), keepdim=True)) / pixels.std((0, 2, 3), keepdim=True)
    table = torch.randint(0, 90, (40, 4), generator=torch.Generator().manual_seed(1)).float()
    assert scaled_by_itself(sample) == "sample"
    assert [scaled_by_itself(some) for some in (batch, channel)] == ["batch"] * 2
    assert scaled_by_itself((table - table.mean(0)) / table.std(0)) == "batch"
    assert scaled_by_itself((pixels / 255 - 0.5) / 0.29) == ""
    assert scaled_by_itself(torch.randn(64, 20)) == ""
    assert scaled_by_itself(torch.zeros(64, 20)) == ""
    assert scaled_by_itself(sample.half()) == "sample"
    assert scaled_by_itself(torch.rand(4, 20).to(torch.float8_e4m3fn)) == ""


def test_levels_are_emitted_beside_the_values():
    torch.manual_seed(0)
    model = nn.Linear(20, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = (100 * torch.rand(16, 20).square()).round() / 100
    with capture_events() as events:
        model(x).sum().backward()
        optimizer.step()
        with torch.no_grad():
            model(4 * x)
    found = [(one.training, one.distance) for one in events if isinstance(one, ev.LevelsRead)]
    assert found == [(True, 0.01), (False, 0.04)]


def trained(batches):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.BatchNorm2d(4)).train()
    with torch.no_grad():
        for _ in range(batches):
            model(torch.randn(16, 1, 8, 8))
    return model.eval()


def read(model, *inputs):
    with capture_events() as events, torch.no_grad():
        for given in inputs:
            model(given)
    return [event for event in events if isinstance(event, ev.FirstNormRead)]


def test_the_first_normalisation_of_an_evaluation_is_compared_with_its_statistics():
    model, x = trained(60), torch.randn(16, 1, 8, 8)
    near, far, small = read(model, x, 100 + 20 * x, x / 50)
    assert near.layer == far.layer == "1"
    assert near.distance < 0.5
    assert 0.8 < near.ratio < 1.2
    assert far.distance > 10
    assert far.ratio > 10
    assert small.ratio < 0.05


def test_few_calls_are_read_and_none_before_the_statistics_are_settled():
    x = torch.randn(16, 1, 8, 8)
    assert len(read(trained(60), *[x] * 5)) == 3
    assert read(trained(3), x) == []
    assert read(trained(60).train(), x) == []


def test_a_call_that_fails_is_not_read_with_the_next_one():
    x, failing, other = torch.randn(16, 1, 8, 8), trained(60).append(nn.Linear(7, 1)), trained(3)
    with capture_events() as events, torch.no_grad():
        with pytest.raises(RuntimeError):
            failing(x)
        other(x)
    assert not any(isinstance(event, ev.FirstNormRead) for event in events)
