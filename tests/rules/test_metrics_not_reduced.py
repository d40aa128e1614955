"""A metric of one part is found where one rank prints it; reduced metrics and those that each rank prints are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from of_ranks import LOADER, MADE, STEPPED, facts, joined, merged

from truestep import events as ev
from truestep.events import Event, Site
from truestep.findings import Confidence, Outcome

EVALUATION = """
def evaluate(model, loader):
    hits = 0
    for inputs, labels in loader:
        hits += (model(inputs).argmax(1) == labels).sum()
    return hits / 64
"""
CALLED_AT = 5


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "train.py"


def evaluated(rank: int, script: Path, *events: Event, parts: int = 2) -> dict[str, Any]:
    """Return the facts of a rank that trains on loader 1 and evaluates on loader 2."""
    call = Site(str(script), CALLED_AT, 17, CALLED_AT, 30)
    return facts(
        "metrics-not-reduced",
        joined(rank),
        ev.LoaderMet(loader=1, name="loader", parts=2, site=LOADER),
        ev.LoaderMet(loader=2, name="validation", parts=parts, samples=128, site=LOADER),
        ev.LoaderStarted(loader=1),
        ev.BatchDrawn(loader=1),
        ev.ModelCalled(model=1, loader=1, site=call),
        MADE,
        STEPPED,
        ev.LoaderStarted(loader=2),
        ev.BatchDrawn(loader=2),
        ev.ModelCalled(model=1, loader=2, grad=False, tracked=False, training=False, site=call),
        *events,
    )


def found(script: Path, text: str, *events: Event, parts: int = 2) -> tuple[Any, ...]:
    script.write_text(EVALUATION + text)
    ranks = [evaluated(rank, script, *events, parts=parts) for rank in (0, 1)]
    return merged("metrics-not-reduced", *ranks).findings


@pytest.mark.parametrize(
    "text",
    [
        "accuracy = evaluate(model, validation)\nif rank == 0:\n    print(accuracy)",
        "if accelerator.is_main_process:\n    print(f'{evaluate(m, v)}')\n    a = evaluate(m, v)\n    print(a)",
        "r = Trainer.evaluate(m, v)\nbest = max(best, r)\nif dist.get_rank() == 0:\n    logger.info('%s', best)",
        "class T:\n  def f(self):\n    self.a = evaluate(m, v)\n    if self.rank == 0: w.add_scalar('a', self.a)",
    ],
)
def test_a_metric_that_one_rank_prints_is_found(script: Path, text: str) -> None:
    (finding,) = found(script, text)
    assert finding.primary.site == Site(str(script), CALLED_AT, 17, CALLED_AT, 30)
    assert finding.message == "the metric that one rank prints is that of 1/2 of the samples of `validation`"
    assert finding.confidence is Confidence.MEDIUM
    printed = finding.related[1].site
    assert printed is not None
    assert any(word in script.read_text().splitlines()[printed.line - 1] for word in ("print", "info", "add_scalar"))


GUARDED = "a = evaluate(m, v)\nif rank == 0:\n    print(a)"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a = evaluate(m, v)\nprint(rank, a)", id="each rank prints"),
        pytest.param(GUARDED + "\nprint(a)", id="one output on each rank"),
        pytest.param("a = evaluate(m, v)\nif rank == 0:\n    print('done')", id="no output of the result"),
        pytest.param("a = evaluate(m, v)\nif a > best:\n    print(a)", id="another condition"),
        pytest.param("a = evaluate(m, v", id="not Python"),
    ],
)
def test_other_outputs_are_quiet(script: Path, text: str) -> None:
    assert found(script, text) == ()


@pytest.mark.parametrize("operation", ["reduce", "gather"])
def test_combined_results_are_quiet(script: Path, operation: str) -> None:
    assert found(script, GUARDED, ev.CollectiveCalled(operation=operation, numbers=1)) == ()


def test_the_average_of_gradients_and_a_broadcast_combine_no_results(script: Path) -> None:
    averaged = ev.CollectiveCalled(operation="reduce", of="gradient", numbers=64)
    sent = ev.CollectiveCalled(operation="broadcast", numbers=64)
    assert len(found(script, GUARDED, averaged, sent)) == 1


def test_all_samples_on_each_rank_are_quiet(script: Path) -> None:
    assert found(script, GUARDED, parts=1) == ()


def test_an_evaluation_on_one_rank_is_quiet(script: Path) -> None:
    script.write_text(EVALUATION + GUARDED)
    alone = evaluated(0, script)
    trained = facts("metrics-not-reduced", joined(1), ev.ModelCalled(model=1, site=LOADER), MADE, STEPPED)
    assert merged("metrics-not-reduced", alone, trained).findings == ()


def test_only_a_reduction_in_the_evaluation_is_called_clear(script: Path) -> None:
    script.write_text(EVALUATION + GUARDED)
    reduced = ev.CollectiveCalled(operation="reduce", numbers=1)
    trains = ev.ModelCalled(model=1, loader=1, site=LOADER)

    def outcome(*events: Event, parts: int = 2) -> Outcome:
        ranks = [evaluated(rank, script, *events, parts=parts) for rank in (0, 1)]
        return merged("metrics-not-reduced", *ranks).verdicts[0].outcome

    assert outcome(reduced) is Outcome.CLEAR
    assert outcome(trains, reduced) is Outcome.NOT_OBSERVED
    assert outcome(parts=1) is Outcome.NOT_OBSERVED
