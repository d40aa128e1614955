"""Masks and indices of a training, a validation and a test that have rows in common."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from truestep.events import SelectionsShared
from truestep.probes.variables.selections import part_of
from truestep.testing import capture_events

ROWS = 120
X, Y = torch.randn(ROWS, 4, generator=torch.Generator().manual_seed(0)), torch.arange(ROWS) % 3
ORDER = torch.randperm(ROWS, generator=torch.Generator().manual_seed(1))


def accuracy(weights: Any, rows: Any) -> float:
    return float(((X @ weights)[rows].argmax(1) == Y[rows]).float().mean())


def mask(rows: Any) -> Any:
    return torch.zeros(ROWS, dtype=torch.bool).index_fill(0, rows, True)


def step(weights: Any, train: Any) -> None:
    F.cross_entropy((X @ weights)[train], Y[train]).backward()


def parts(*, right: bool = False) -> tuple[Any, Any, Any]:
    train, val, test = torch.zeros(3, ROWS, dtype=torch.bool)
    train[ORDER[:40]] = True
    val[ORDER[40:70]] = True
    test[ORDER[70 if right else 40 :]] = True
    return train, val, test


def found(program: Callable[[Any], None]) -> list[SelectionsShared]:
    weights = torch.zeros(4, 3, requires_grad=True)
    torch.optim.SGD([weights], lr=0.1)
    with capture_events() as events:
        program(weights)
    return [event for event in events if isinstance(event, SelectionsShared)]


def in_variables(weights: Any) -> None:
    train_mask, val_mask, test_mask = parts()
    step(weights, train_mask)
    best, score = 0.0, accuracy(weights, val_mask)
    if score > best:
        best = score
    accuracy(weights, test_mask)


def in_a_tuple(weights: Any) -> None:
    masks = parts()
    step(weights, masks[0])
    accuracy(weights, masks[1])
    accuracy(weights, masks[2])


def in_a_dict(weights: Any) -> None:
    splits = {"train": ORDER[:40], "val": ORDER[40:70], "test": ORDER[40:]}
    step(weights, splits["train"])
    accuracy(weights, splits["val"])
    accuracy(weights, splits["test"])


def in_an_object(weights: Any) -> None:
    data = SimpleNamespace()
    data.train_mask, data.val_mask, data.test_mask = (one.numpy() for one in parts())
    step(weights, data.train_mask)
    for rows in (data.val_mask, data.test_mask):
        accuracy(weights, rows)


def in_lists(weights: Any) -> None:
    order = ORDER.tolist()
    train_idx, val_idx, test_idx = order[:40], order[40:70], order[40:]
    step(weights, train_idx)
    accuracy(weights, val_idx)
    accuracy(weights, test_idx)


@pytest.mark.parametrize(
    ("program", "names"),
    [
        (in_variables, ("val_mask", "test_mask")),
        (in_a_tuple, ("val", "test")),
        (in_a_dict, ("splits['val']", "splits['test']")),
        (in_an_object, ("data.val_mask", "data.test_mask")),
        (in_lists, ("val_idx", "test_idx")),
    ],
)
def test_validation_rows_in_a_test_are_found(program: Callable[[Any], None], names: tuple[str, str]) -> None:
    (event,) = found(program)
    assert (event.one, event.other) == names
    assert (event.parts, event.rows, event.shared) == (("validation", "test"), (30, 80), 30)
    assert event.chosen
    assert event.site is not None


def test_the_statement_that_writes_a_mask_is_that_of_the_function_that_returns_it() -> None:
    (event,) = found(in_a_tuple)
    assert event.site is not None
    first = parts.__code__.co_firstlineno
    assert (event.site.line, event.made and event.made.line) == (first + 4, first + 3)


def right(weights: Any) -> None:
    train_mask, val_mask, test_mask = parts(right=True)
    step(weights, train_mask)
    accuracy(weights, val_mask)
    accuracy(weights, test_mask)


def one_mask_under_two_names(weights: Any) -> None:
    train_mask, val_mask, _ = parts()
    test_mask = val_mask
    step(weights, train_mask)
    accuracy(weights, test_mask)


def taken_out_later(weights: Any) -> None:
    train_mask, dev_mask, tst_mask = parts()
    step(weights, train_mask)
    accuracy(weights, tst_mask & ~dev_mask)
    accuracy(weights, tst_mask)


def held_without(weights: Any) -> None:
    train_mask, val_mask, test_mask = parts()
    final = mask(ORDER[70:])
    step(weights, train_mask)
    accuracy(weights, val_mask)
    accuracy(weights, final)
    accuracy(weights, test_mask)


def not_used(weights: Any) -> None:
    train_rows, val_rows, test_rows = parts()
    step(weights, train_rows)
    print(int(val_rows.sum()), int(test_rows.sum()))


def of_all_rows(weights: Any) -> None:
    train_mask, val_mask, _ = parts()
    test_mask = torch.ones(ROWS, dtype=torch.bool)
    step(weights, train_mask)
    accuracy(weights, val_mask)
    accuracy(weights, test_mask)


def of_another_fold(weights: Any) -> None:
    for fold in range(2):
        train_mask = mask(ORDER[60 * fold :][:60])
        for _ in range(fold):  # the first fold takes no step: the mask of its test is left
            step(weights, train_mask)
        test_mask = mask(ORDER[30:90]) if fold else ~train_mask
        accuracy(weights, test_mask)


def of_an_earlier_loop(weights: Any) -> None:
    for fold in range(2):
        test_mask = mask(ORDER[60 * fold :][:60])
        accuracy(weights, test_mask)
    train_mask = mask(ORDER[40:100])
    step(weights, train_mask)
    accuracy(weights, train_mask)


def of_positions_in_a_part(weights: Any) -> None:
    test_idx = np.arange(ROWS)[::4]
    rest = np.setdiff1d(np.arange(ROWS), test_idx)
    x, y = X[rest], Y[rest]
    val_idx = np.arange(len(x))[::8]
    F.cross_entropy(x[val_idx] @ weights, y[val_idx]).backward()
    accuracy(weights, test_idx)


def of_other_things(weights: Any) -> None:
    train_users, val_users, test_users = ORDER[:80], ORDER[30:90], ORDER[20:]
    step(weights, train_users)
    accuracy(weights, val_users)
    accuracy(weights, test_users)


def of_values(weights: Any) -> None:
    items = {"train": ORDER[:80], "val": ORDER[30:90], "test": ORDER[20:]}
    step(weights, items["train"])
    accuracy(weights, items["val"])
    accuracy(weights, items["test"])


def of_two_tables(weights: Any) -> None:
    train_mask, val_mask, test_mask = parts()
    spring, autumn = X, X + 1
    step(weights, train_mask)
    print(spring[val_mask].sum(), autumn[test_mask].sum())


def from_the_first_row(weights: Any) -> None:
    train_idx, val_idx, test_idx = ORDER[:40], torch.arange(60), torch.arange(90)
    step(weights, train_idx)
    accuracy(weights, val_idx)
    accuracy(weights, test_idx)


@pytest.mark.parametrize(
    "program",
    [
        right,
        of_two_tables,
        from_the_first_row,
        one_mask_under_two_names,
        taken_out_later,
        held_without,
        not_used,
        of_all_rows,
        of_another_fold,
        of_an_earlier_loop,
        of_positions_in_a_part,
        of_other_things,
        of_values,
    ],
)
def test_healthy_selections_are_quiet(program: Callable[[Any], None]) -> None:
    assert found(program) == []


def test_names_that_are_no_names_are_left_out() -> None:
    def odd(weights: Any) -> None:
        data = SimpleNamespace(**{"test {mask}": parts()[2], "val mask": parts()[1], "{}": {"test": 1}})
        given = {1: parts()[2], ("val",): parts()[1]}
        step(weights, parts()[0])
        assert given
        assert data

    assert found(odd) == []


def test_names_that_tell_more_than_the_part_are_of_no_part() -> None:
    assert part_of("test_idx") == ("test", frozenset({"idx"}))
    assert [part_of(name) for name in ("trainval_mask", "train_val_mask", "test_users", "val_small_idx", "mask")] == [
        None
    ] * 5
