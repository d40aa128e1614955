"""Stored samples that change: by one operation for all rows, at random through a view, otherwise, or not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from truestep.events import StoredCompared
from truestep.probes.active.data_sets.stored import StoredSamples
from truestep.testing import capture_events


class Samples(Dataset[tuple[torch.Tensor, int]]):
    def __init__(self, change: Callable[[torch.Tensor], object]) -> None:
        torch.manual_seed(0)
        self.x = 1 + torch.rand(160, 10)
        self.change = change

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        row = self.x[index]
        self.change(row)
        return row, index % 2


class NoiseOnView(Samples):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        row = self.x[index]
        row += 0.1 * torch.randn(10)
        return row, index % 2


class HiddenInView(Samples):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        row = self.x[index].view(10)
        hidden = torch.rand(10) < 0.2
        row[hidden] = 0.0
        return row.clone(), index % 2


class NoiseOnCopy(Samples):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        row = self.x[index].clone()
        row += 0.1 * torch.randn(10)
        return row, index % 2


class NoiseThatIsMeant(Samples):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        self.x[index] += 0.1 * torch.randn(10)
        return self.x[index], index % 2


class DrawnAnew(Samples):
    def __init__(self, change: Callable[[torch.Tensor], object]) -> None:
        super().__init__(change)
        self.clean = self.x.clone()

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        row = self.x[index]
        row.copy_(self.clean[index])
        row += 0.1 * torch.randn(10)
        return row, index % 2


class Averaged(Samples):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        row = self.x[index]
        row *= 0.9
        row += 0.1 * torch.rand(10)
        return row, index % 2


class FilledOnce(Samples):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        row = self.x[index]
        if row.max() > 0:
            row -= row.max() + torch.rand(())
        return row, index % 2


def compared(change: Callable[[torch.Tensor], object], kind: type[Samples] = Samples) -> list[StoredCompared]:
    """Return the comparisons of a training of eight passes, in which each read of a sample changes it."""
    data, model = kind(change), nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with capture_events() as events:
        for _ in range(8):
            for x, y in DataLoader(data, batch_size=20, shuffle=True):
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
    return [one for one in events if isinstance(one, StoredCompared)]


@pytest.mark.parametrize(
    ("change", "factor", "offset"),
    [
        (lambda row: row.div_(4), 0.25, 0.0),
        (lambda row: row.sub_(3), 1.0, -3.0),
        (lambda row: row.mul_(0.5).add_(2), 0.5, 2.0),
    ],
)
def test_one_operation_for_all_rows_is_found(change, factor, offset):
    found = [one for one in compared(change) if one.times]
    assert len(found) == 1
    assert found[0].times >= 2
    assert found[0].factor == pytest.approx(factor, abs=1e-3)
    assert found[0].offset == pytest.approx(offset, abs=1e-2)


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.add_(0.1 * torch.randn(10)),
        lambda row: row.mul_(1 + 0.3 * float(torch.rand(()))),
        lambda row: row.mul_(0.9).add_(0.1 * torch.rand(10)),
        lambda row: row.copy_(row.roll(1)),
        lambda row: row.clamp_(1.2, 1.8),
    ],
)
def test_other_changes_are_not_counted(change):
    assert [one for one in compared(change) if one.times] == []


def test_samples_that_stay_are_compared():
    found = compared(lambda row: None)
    assert found
    assert {one.times for one in found} == {0}


@pytest.mark.parametrize("kind", [NoiseOnView, HiddenInView])
def test_random_values_that_are_written_to_a_view_are_found(kind):
    found = [one for one in compared(lambda row: None, kind) if one.times]
    assert len(found) == 1
    assert found[0].random
    assert found[0].times >= 2
    assert found[0].made is not None


@pytest.mark.parametrize("kind", [NoiseOnCopy, NoiseThatIsMeant, DrawnAnew, Averaged, FilledOnce])
def test_random_values_that_are_meant_or_do_not_pile_up_are_not_found(kind):
    assert [one for one in compared(lambda row: None, kind) if one.times] == []


def sliced() -> list[StoredCompared]:
    """Return the comparisons of a training on slices of a tensor, with noise that is added to the slices."""
    torch.manual_seed(0)
    table, wanted, model = torch.randn(160, 10), torch.randint(0, 2, (160,)), nn.Linear(10, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with capture_events() as events:
        for _ in range(8):
            for start in range(0, 160, 20):
                part = table[start : start + 20]
                target = wanted[start : start + 20]
                part += 0.1 * torch.randn(20, 10)
                optimizer.zero_grad()
                F.cross_entropy(model(part), target).backward()
                optimizer.step()
    return [one for one in events if isinstance(one, StoredCompared) and one.times]


def test_noise_on_slices_of_samples_is_found():
    (found,) = sliced()
    assert found.random
    assert found.table == "table"


def walked() -> list[StoredCompared]:
    """Return the comparisons of a training on points that walk at random."""
    torch.manual_seed(0)
    points, model = torch.randn(160, 10), nn.Linear(10, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with capture_events() as events:
        for _ in range(8):
            for start in range(0, 160, 20):
                walker = points[start : start + 20]
                walker += 0.1 * torch.randn(20, 10)
                optimizer.zero_grad()
                F.mse_loss(model(walker), walker.norm(dim=1, keepdim=True)).backward()
                optimizer.step()
    return [one for one in events if isinstance(one, StoredCompared) and one.times]


def test_points_that_walk_at_random_are_not_found():
    assert walked() == []


def moved() -> list[StoredCompared]:
    """Return the comparisons of a training on states that are moved at random after each step, beside their goals."""
    torch.manual_seed(0)
    states, goals, model = torch.randn(160, 10), torch.randn(160, 10), nn.Linear(20, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with capture_events() as events:
        for _ in range(8):
            for start in range(0, 160, 20):
                state = states[start : start + 20]
                goal = goals[start : start + 20]
                action = model(torch.cat([state, goal], 1))
                optimizer.zero_grad()
                F.mse_loss(state + action, goal).backward()
                optimizer.step()
                state += 0.1 * action.detach() + 0.1 * torch.randn(20, 10)
    return [one for one in events if isinstance(one, StoredCompared) and one.times]


def test_states_that_move_on_after_their_last_use_are_not_found():
    assert moved() == []


def test_a_table_that_has_gone_is_left_out(monkeypatch):
    looked, found_tables, errors = StoredSamples.look, [], []

    def look(self, found, *others):
        for one in found:
            one.table.ref = lambda: None
        found_tables.extend(found)
        try:
            looked(self, found, *others)
        except Exception as error:
            errors.append(error)

    monkeypatch.setattr(StoredSamples, "look", look)
    assert sliced() == []
    assert found_tables
    assert errors == []
