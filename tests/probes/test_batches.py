"""Reads of batches: their places, the fingerprints of equal batches, and labels in order."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from truestep.events import BatchRead, LoaderMet, LoaderStarted, Site
from truestep.probes.data.batches import describe
from truestep.probes.data.loop_source import leaving
from truestep.testing import capture_events

X, Y = torch.rand(48, 3), torch.arange(48) // 12


def read(events) -> list[BatchRead]:
    return [event for event in events if isinstance(event, BatchRead)]


def test_some_batches_of_the_first_three_passes_are_read_and_none_of_an_evaluation() -> None:
    with capture_events() as events:
        loader = DataLoader(TensorDataset(X, Y), 4)
        for _ in range(5):
            list(loader)
        with torch.no_grad():
            list(DataLoader(TensorDataset(X, Y), 4))
    assert [event.place for event in read(events)] == [0, 3, 6, 9, 11] * 3
    assert [event.labels for event in read(events)[:5]] == [(0, 0, 1), (1, 1, 1), (2, 2, 1), (3, 3, 1), (3, 3, 1)]


def test_a_loader_is_met_where_it_was_made_with_its_order() -> None:
    with capture_events() as events:
        made = [DataLoader(TensorDataset(X, Y), 4), DataLoader(TensorDataset(X, Y), 4, shuffle=True)]
        made.append(DataLoader(TensorDataset(X), 4, sampler=torch.utils.data.RandomSampler(X, True)))
        for loader in made:
            next(iter(loader))
    met = [event for event in events if isinstance(event, LoaderMet)]
    assert [event.sampler for event in met] == ["sequential", "random", "own"]
    assert len({event.site.line for event in met if event.site}) == 2


def test_equal_batches_have_one_fingerprint() -> None:
    one = describe(torch, {"x": X, "label": Y})
    assert one is not None
    assert one == describe(torch, {"x": X.clone(), "label": Y.clone()})
    for other in ({"x": X + 1, "label": Y}, {"x": X.double(), "label": Y}, {"x": X, "label": Y.flip(0)}):
        changed = describe(torch, other)
        assert changed is not None
        assert changed.fingerprint != one.fingerprint


@pytest.mark.parametrize(
    ("batch", "labels", "labelled"),
    [
        ((X, Y), (0, 3, 4), True),
        ([X, Y.flip(0)], (), True),
        ({"labels": Y, "length": torch.ones(48, dtype=torch.long), "x": X}, (0, 3, 4), True),
        ((X, torch.arange(48)), (), False),
        ((Y, Y, X[:, 0]), (), False),
        ((X, Y.float()), (), False),
        (X, (), False),
        ((X, (Y, {"index": torch.arange(48)})), (0, 3, 4), True),
    ],
)
def test_labels_are_the_only_whole_numbers_that_repeat(batch: object, labels: object, labelled: bool) -> None:
    described = describe(torch, batch)
    assert described is not None
    assert (described.labels, described.labelled) == (labels, labelled)


def test_what_is_no_plain_tensor_is_not_read() -> None:
    class Own(torch.Tensor):
        pass

    for batch in (X.to_sparse(), X.as_subclass(Own), "words", [1, 2], X.to("meta"), X[:0], (X, X.to_sparse()), None):
        assert describe(torch, batch) is None


def test_values_that_are_not_finite_are_read() -> None:
    assert describe(torch, torch.tensor([float("nan"), float("inf"), 1.0])) is not None


def test_workers_of_a_stream_are_read_twice_around() -> None:
    with capture_events() as events:
        list(DataLoader(Numbers(), 4, num_workers=2))
    first, other, second, after = (event.fingerprint for event in read(events))
    assert first == other != second == after


class Numbers(IterableDataset[torch.Tensor]):
    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(X)


class Broken(Dataset[int]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        raise ZeroDivisionError


def test_an_error_of_the_dataset_is_the_programs_own() -> None:
    with capture_events() as events, pytest.raises(ZeroDivisionError):
        next(iter(DataLoader(Broken())))
    assert [type(event) for event in events if isinstance(event, LoaderStarted)] == [LoaderStarted]


LOOPS = """
for a in one:
    total += 1
    break
for b in enumerate(two):
    if b:
        break
for c in three:
    with lock:
        return c
x = next(iter(four))
for d in five:
    try:
        break
    except ValueError:
        pass
"""


@pytest.mark.parametrize(
    ("line", "column", "length", "left", "body", "sums"),
    [
        (2, 9, 3, "break", (2, 4), True),
        (5, 9, 14, "", (), False),
        (8, 9, 5, "return", (8, 10), False),
        (11, 9, 10, "next", (), False),
        (12, 9, 4, "", (), False),
        (11, 0, 1, "", (), False),
    ],
)
def test_what_always_leaves_a_loop(
    line: int, column: int, length: int, left: str, body: object, sums: bool, tmp_path: Path
) -> None:
    path = tmp_path / "loops.py"
    path.write_text(LOOPS)
    said = leaving(Site(str(path), line, column, line, column + length))
    assert (said.left, said.body, said.sums) == (left, body, sums)


def test_a_source_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("for x in (:\n")
    for site in (None, Site("nowhere.py", 1, 0, 1, 5), Site(str(broken), 1, 9, 1, 10)):
        assert leaving(site).left == "unread"


ONE = torch.rand(1, 12).expand(16, 12)
CLASSES = torch.arange(16) % 3


@pytest.mark.parametrize(
    ("batch", "alike"),
    [
        ((ONE, CLASSES), 16),
        ({"x": ONE.reshape(16, 3, 2, 2), "y": torch.rand(16, 1)}, 16),
        ((ONE, CLASSES, torch.ones(16)), 16),
        ((torch.rand(16, 12), CLASSES), 0),
        ((ONE, torch.zeros(16, dtype=torch.long)), 0),
        ((ONE,), 0),
        ((ONE, CLASSES, torch.rand(16, 12)), 0),
        ((torch.zeros(16, 12), CLASSES), 0),
        ((ONE[:, :4], CLASSES), 0),
        ((ONE[:4], CLASSES[:4]), 0),
        ((torch.full((16, 12), torch.nan), CLASSES), 0),
    ],
)
def test_samples_that_are_all_equal_under_labels_that_differ(batch: object, alike: int) -> None:
    described = describe(torch, batch)
    assert described is not None
    assert described.alike == alike


def test_more_batches_are_read_while_samples_are_equal() -> None:
    data = TensorDataset(torch.rand(1, 12).repeat(64, 1), torch.arange(64) % 5)
    with capture_events() as events:
        list(DataLoader(data, 16, shuffle=True))
    assert [(event.place, event.alike) for event in read(events)] == [(0, 16), (1, 16), (2, 16)]
