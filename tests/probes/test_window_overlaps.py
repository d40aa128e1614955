"""Windows of an evaluation that go on in windows of the training, after a split at random."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset

from truestep.events import WindowsShared
from truestep.testing import capture_events

STEPS = 12


def series(steps: int = 700) -> Tensor:
    values = torch.randn(steps, generator=torch.Generator().manual_seed(1))
    for step in range(1, steps):
        values[step] += 0.9 * values[step - 1]
    return values


def windows(values: Tensor, ahead: int = 1) -> tuple[Tensor, Tensor]:
    cut = values.unfold(0, STEPS + ahead, 1)
    return cut[:, :STEPS].clone(), cut[:, STEPS:].clone()


def train(model: nn.Module, x: Tensor, y: Tensor) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        for rows in torch.randperm(len(x)).split(50):
            F.mse_loss(model(x[rows]), y[rows]).backward()
            optimizer.step()
            optimizer.zero_grad()


def compared(*parts: tuple[Tensor, Tensor]) -> list[WindowsShared]:
    """Return the events of a training on the first part, and an evaluation of each other one."""
    (x, y), *others = parts
    model = nn.Linear(STEPS, y.shape[1])
    with capture_events() as events:
        train(model, x, y)
        with torch.no_grad():
            for held, _ in others:
                model(held)
    return [one for one in events if isinstance(one, WindowsShared)]


def chosen(part: tuple[Tensor, Tensor], rows: Tensor) -> tuple[Tensor, Tensor]:
    return part[0][rows], part[1][rows]


def test_windows_that_are_split_at_random_go_on_in_the_training() -> None:
    for ahead in (1, 3):
        both = windows(series(), ahead)
        order = torch.randperm(len(both[0]))
        (one,) = compared(chosen(both, order[:500]), chosen(both, order[500:]))
        assert one.expected == one.samples == len(order) - 500
        assert 0.6 * one.samples < one.shared < one.samples


def test_later_windows_do_not() -> None:
    both = windows(series())
    rows = torch.arange(len(both[0]))
    (one,) = compared(chosen(both, rows[:500]), chosen(both, rows[500:]))
    assert one.shared <= 1


def test_parts_on_one_line_are_counted_apart() -> None:
    past, later = windows(series()[:500]), windows(series()[500:])
    order = torch.randperm(len(past[0]))
    random, by_time = compared(chosen(past, order[:350]), chosen(past, order[350:]), later)
    assert random.shared > 0.5 * random.expected
    assert by_time.shared == 0


def test_other_targets_than_the_next_step_are_not_compared() -> None:
    x, _ = windows(series())
    order = torch.randperm(len(x))
    both = x, x.std(1, keepdim=True)
    assert compared(chosen(both, order[:500]), chosen(both, order[500:])) == []


def test_windows_of_the_training_are_no_evaluation() -> None:
    both = windows(series())
    order = torch.randperm(len(both[0]))[:500]
    (one,) = compared(chosen(both, order), chosen(both, order[:100]))
    assert (one.shared, one.expected) == (0, 0)


def loaders(both: tuple[Tensor, Tensor], order: list[int]) -> list[WindowsShared]:
    """Return the events of two parts of a data set, each with a loader."""
    data = TensorDataset(*both)
    first, second = DataLoader(Subset(data, order[:500]), 50, shuffle=True), DataLoader(Subset(data, order[500:]), 50)
    model = nn.Linear(STEPS, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with capture_events() as events:
        for _ in range(4):
            for x, y in first:
                F.mse_loss(model(x), y).backward()
                optimizer.step()
                optimizer.zero_grad()
        with torch.no_grad():
            for x, _ in second:
                model(x)
    return [one for one in events if isinstance(one, WindowsShared)]


def test_parts_of_a_data_set_are_compared_by_the_steps_that_were_read() -> None:
    both = windows(series())
    events = loaders(both, torch.randperm(len(both[0])).tolist())
    assert all(one.loader is not None for one in events)
    assert sum(one.shared for one in events) > 0.5 * sum(one.expected for one in events) > 10
    ordered = loaders(both, list(range(len(both[0]))))
    assert sum(one.shared for one in ordered) <= 1
