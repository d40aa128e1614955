"""How far a run came, from hand-built events; and the same after an exchange between ranks or a record."""

import math
from dataclasses import replace

import pytest

from truestep import events as ev
from truestep.events import Site
from truestep.findings import Chance, Coverage, Summary
from truestep.rules import Progress
from truestep.supervision.exchange import from_dict, to_dict
from truestep.supervision.extent import Extent
from truestep.supervision.launching.uncaught import described
from truestep.supervision.ranks import merge

HERE = Site("train.py", 5)
CROSS = ev.LossComputed(kind="cross_entropy", site=HERE, classes=10)
SAMPLED = (0, 1, 2, 3, 10, 20, 50, 100, 200)


def coverage(losses, *values, steps=SAMPLED, error=""):
    extent, progress = Extent(), Progress()
    for step, value in zip(steps, values, strict=False):
        for event in (*losses, ev.LossRead(value=value, root="NllLossBackward0")):
            progress.note(event)
            extent.note(event, step)
    return extent.coverage(progress, error)


FLAT = (2.9, 2.35, 2.31, 2.28, 2.33, 2.29, 2.34, 2.27, 2.31)


def test_loss_that_stays_at_chance():
    assert coverage([CROSS], *FLAT).chance == Chance(10, 2.31, 200)


@pytest.mark.parametrize(
    ("losses", "values", "steps"),
    [
        ([CROSS], (2.3, 2.2, 2.1, 2.0, 1.9, 1.8, 1.7, 1.5, 1.2), SAMPLED),
        ([CROSS], (*FLAT[:-1], 2.0), SAMPLED),
        ([CROSS], FLAT, range(9)),
        ([CROSS], FLAT[:7], SAMPLED),
        ([CROSS], tuple(4 * value for value in FLAT), SAMPLED),
        ([CROSS, ev.LossComputed(kind="cross_entropy", site=Site("train.py", 9), classes=2)], FLAT, SAMPLED),
        ([CROSS, ev.LossComputed(kind="mse_loss", site=HERE)], FLAT, SAMPLED),
        ([replace(CROSS, reduction="sum")], FLAT, SAMPLED),
        ([replace(CROSS, classes=1)], FLAT, SAMPLED),
        ([], FLAT, SAMPLED),
    ],
    ids=["falls", "falls late", "early", "few", "far above", "two losses", "other loss", "sum", "one class", "no loss"],
)
def test_chance_is_not_said_otherwise(losses, values, steps):
    assert coverage(losses, *values, steps=steps).chance is None


def test_losses_of_an_evaluation_do_not_count():
    evaluated = ev.LossComputed(kind="mse_loss", site=HERE, grad=False)
    assert coverage([CROSS, evaluated], *FLAT).chance is not None


def test_two_classes():
    two = replace(CROSS, classes=2)
    assert coverage([two], *(math.log(2) + 0.01 * (-1) ** n for n in range(9))).chance == Chance(2, 0.695, 200)


CLEARED = ev.OptimizerStepped(optimizer=1, observed=2, absent_grad=1, cleared=1)
USED = ev.OptimizerStepped(optimizer=1, observed=2, fresh=1, absent_grad=1)


@pytest.mark.parametrize(
    ("events", "fed"),
    [
        ([], True),
        ([CLEARED] * 3, False),
        ([CLEARED, USED, CLEARED], True),
        ([CLEARED, ev.HandStepped(moved=1)], True),
        ([replace(CLEARED, closure=True)], True),
        ([replace(CLEARED, scaler=True)], True),
        ([ev.OptimizerStepped(optimizer=1)], True),
    ],
    ids=["no step", "none", "one", "by hand", "closure", "scaler", "not observed"],
)
def test_steps_that_used_no_gradient(events, fed):
    extent, progress = Extent(), Progress()
    for event in events:
        progress.note(event)
        extent.note(event, progress.step)
        progress.advance(event)
    assert extent.coverage(progress, "").fed is fed


def test_what_was_met():
    extent, progress = Extent(), Progress()
    assert extent.coverage(progress, "") == Coverage(called=False, backward=False)
    for event in (ev.ModelCalled(model=1), ev.BackwardEnded(), ev.ProcessStarted(site=HERE), ev.ProcessStarted()):
        progress.note(event)
        extent.note(event, 0)
    assert extent.coverage(progress, "KeyError") == Coverage(error="KeyError", processes=2, started=HERE)


WHOLE = Coverage(error="KeyError: 'x'", processes=2, started=HERE, chance=Chance(10, 2.3, 200))


def test_coverage_survives_the_exchange():
    summary = Summary("train.py", "crashed", 3, coverage=WHOLE)
    assert from_dict(to_dict(summary)) == summary


def test_coverage_of_several_ranks():
    none = Summary("train.py", "finished", 0, coverage=Coverage(called=False, backward=False))
    merged = merge({0: none, 1: replace(none, coverage=WHOLE)}, 2)
    assert merged.coverage == replace(WHOLE, chance=None)
    assert merge({0: replace(none, coverage=WHOLE), 1: replace(none, coverage=WHOLE)}, 2).coverage.chance is not None


def test_exception_in_one_line():
    class Unprintable(Exception):
        def __str__(self):
            raise ValueError

    assert described(RuntimeError("first\nsecond")) == "RuntimeError: first"
    assert described(KeyboardInterrupt()) == "KeyboardInterrupt"
    assert described(Unprintable()) == "Unprintable"
