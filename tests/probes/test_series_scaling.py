"""Statistics of the series that the windows of an evaluation were cut from, next to that of the training."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tiers import only
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

from truestep.events import ScalingRead
from truestep.probes.active.series.sources import holds
from truestep.probes.active.series.statistics import statistics_of
from truestep.testing import capture_events

STEPS = 20


def raw(columns: int = 3, steps: int = 900, seed: int = 3) -> torch.Tensor:
    """Return a series with noise, far from a mean of 0."""
    draw = np.random.default_rng(seed)
    out = np.zeros((steps, columns))
    for at in range(1, steps):
        out[at] = 0.8 * out[at - 1] + draw.normal(size=columns)
    return torch.from_numpy(50 + 3 * (out + 0.3 * np.abs(out))).float()


def scaled(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    return (x - by.mean(0)) / by.std(0)


def ranged(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    return (x - by.amin(0)) / (by.amax(0) - by.amin(0))


def windows(x: torch.Tensor) -> TensorDataset:
    return TensorDataset(torch.stack([x[at : at + STEPS] for at in range(len(x) - STEPS)]), x[STEPS:].clone())


class Cut(Dataset):
    def __init__(self, series: torch.Tensor) -> None:
        self.series = series

    def __len__(self) -> int:
        return len(self.series) - STEPS

    def __getitem__(self, at: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.series[at : at + STEPS], self.series[at + STEPS]


class Forecaster(nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.head = nn.Linear(STEPS * columns, columns)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x.flatten(1))


def run(train: Dataset, *parts: Dataset) -> list[tuple[str, str, int]]:
    """Return the facts of series, of evaluations after a training."""
    torch.manual_seed(1)
    model = Forecaster(train[0][0].shape[1])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    with capture_events() as events:
        for x, y in DataLoader(train, batch_size=64, shuffle=True):
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        with torch.no_grad():
            for part in parts:
                for x, _ in DataLoader(part, batch_size=64):
                    model(x)
    return [(one.kind, one.how, one.features) for one in events if isinstance(one, ScalingRead) and one.series]


@pytest.mark.parametrize("data", only([Cut], [windows, Cut]))
def test_a_series_with_statistics_of_its_own_is_found_and_one_with_those_of_the_training_is_not(data):
    x = raw()
    train, rest = x[:600], x[600:]
    assert run(data(scaled(train, train)), data(scaled(rest, rest))) == [("own", "standard", 3)]
    assert run(data(scaled(train, train)), data(scaled(rest, rest) * 2)) == [("own", "centred", 3)]
    assert run(data(ranged(train, train)), data(ranged(rest, rest))) == [("own", "range", 3)]
    assert run(data(scaled(train, train)), data(scaled(rest, train))) == []
    assert run(data(train), data(rest)) == []


@pytest.mark.parametrize("data", [windows, Cut])
def test_parts_that_are_scaled_together_are_found_with_the_last_of_them(data):
    x = scaled(raw(), raw())
    train, val, test = x[:600].clone(), x[600 - STEPS : 750].clone(), x[750 - STEPS :].clone()
    assert run(data(train), data(val), data(test)) == [("joint", "standard", 3)] * 2
    assert run(data(train), data(val)) == []


@pytest.mark.program
def test_a_training_scaled_by_some_of_its_steps_is_compared_with_two_evaluations():
    x = raw()
    train, val, test = x[:400], x[400:600], x[600:]
    by = train[50:]
    alone = Cut(scaled(test, test))
    assert run(Cut(scaled(train, by)), Cut(scaled(val, by)), alone) == [("own", "standard", 3)]
    assert run(Cut(scaled(train, by)), alone) == []
    assert run(Cut(scaled(train, by)), Cut(scaled(val, val)), alone) == []


def test_recordings_that_are_scaled_one_by_one_are_quiet():
    one, two, three, four = (scaled(raw(seed=at, steps=300), raw(seed=at, steps=300)) for at in range(4))
    assert run(Cut(torch.cat([one, two])), Cut(three), Cut(four)) == []


@pytest.mark.program
def test_the_series_of_the_training_in_another_form_is_quiet():
    x = scaled(raw(steps=500), raw(steps=500))
    permuted = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(0))]
    for form in (-x, 2 * x, x.flip(0), permuted):
        assert run(Cut(x), Cut(form)) == []


def test_waves_of_whole_periods_and_hours_have_exact_means_in_every_part():
    wave = torch.sin(torch.arange(900) * 2 * math.pi / 50)[:, None] * 3 + 7
    hours = (torch.arange(900) % 24).float()[:, None].expand(-1, 3)
    assert run(Cut(scaled(wave[:600], wave[:600])), Cut(scaled(wave[600:], wave[:600]))) == []
    assert run(Cut(scaled(hours[:576], hours[:576])), Cut(scaled(hours[576:864], hours[:576]))) == []
    fast = torch.sin(torch.arange(900) * 0.1)[:, None]
    assert run(Cut(ranged(fast[:600], fast[:600])), Cut(ranged(fast[600:], fast[:600]))) == []


def test_windows_that_the_training_reads_are_no_evaluation():
    x = scaled(raw(), raw())
    assert run(Cut(x), Cut(x), Cut(x[:500].clone())) == []
    assert run(Cut(x[:500].clone()), Cut(x)) == []


def test_windows_are_found_with_channels_first_and_flat():
    series = raw()
    window = series[40:60]
    assert all(holds(series, form) for form in (window, window.T.contiguous(), window.reshape(-1)))
    assert not holds(series, window + 1)


def test_series_that_overlap_are_joined_without_the_common_steps():
    x = raw()
    one, two = statistics_of(torch, x[:500]), statistics_of(torch, x[480:])
    joined, whole = one.joined(torch, two), statistics_of(torch, x)
    assert joined.count == 900
    assert torch.allclose(joined.sums, whole.sums)
