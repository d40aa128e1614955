"""Equal batches on all ranks are found, and all samples on each rank; other batches are not."""

from __future__ import annotations

from typing import Any

import pytest
from of_ranks import CALL, CALLED, LOADER, MADE, STEP, STEPPED, WRAPPED, facts, joined, merged

from truestep import events as ev
from truestep.events import Event
from truestep.findings import Confidence, Outcome


def weights(*values: float) -> Event:
    return ev.WeightsRead(optimizer=1, parameters=(1, 2), values=(values, (0.5, 0.5)), site=STEP)


def saw(rank: int, means: tuple[float, ...], losses: tuple[float, ...], **loader: Any) -> dict[str, Any]:
    met = ev.LoaderMet(loader=1, name="loader", site=LOADER, **loader)
    events: list[Event] = [joined(rank), WRAPPED, met, ev.LoaderStarted(loader=1)]
    for mean, loss in zip(means, losses, strict=True):
        inputs = ev.InputsRead(model=1, mean=mean, spread=1.0, least=-3.0, most=3.0, shape=(8, 3), site=CALL)
        events += [ev.BatchDrawn(loader=1), CALLED, inputs, MADE, ev.LossRead(value=loss), weights(1.0, 2.0), STEPPED]
    return facts("ranks-see-same-data", *events)


MEANS, LOSSES = (0.1, 0.2, 0.3, 0.4), (1.1, 1.0, 0.9, 0.8)


def test_equal_batches_on_all_ranks_are_found_at_the_loader() -> None:
    (finding,) = merged("ranks-see-same-data", saw(0, MEANS, LOSSES), saw(1, MEANS, LOSSES)).findings
    assert finding.primary.site == LOADER
    assert finding.message.startswith("`loader` gives 2 ranks the same batches")
    assert finding.primary.label == "equal on all ranks in 4 of 4 batches read"
    assert finding.confidence is Confidence.HIGH


@pytest.mark.parametrize(
    ("means", "losses"),
    [
        pytest.param((0.1, 0.2, 0.3, 0.5), LOSSES, id="another batch"),
        pytest.param(MEANS, (1.1, 1.0, 0.9, 0.7), id="a loss of other samples"),
    ],
)
def test_other_batches_or_losses_are_quiet(means: tuple[float, ...], losses: tuple[float, ...]) -> None:
    assert merged("ranks-see-same-data", saw(0, MEANS, LOSSES), saw(1, means, losses)).findings == ()


def test_one_batch_for_the_whole_run_is_quiet() -> None:
    same = saw(0, (0.1,) * 4, LOSSES), saw(1, (0.1,) * 4, LOSSES)
    assert merged("ranks-see-same-data", *same).findings == ()


WHOLE = {"sampler": "random", "samples": 640, "content": "1f"}


def test_all_samples_on_each_rank_are_found_with_medium_confidence() -> None:
    ranks = saw(0, MEANS, LOSSES, **WHOLE), saw(1, MEANS[::-1], LOSSES, **WHOLE)
    (finding,) = merged("ranks-see-same-data", *ranks).findings
    assert finding.message == "each of 2 ranks reads all 640 samples in each pass over `loader`"
    assert finding.confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    "changed", [{"content": "2e"}, {"content": ""}, {"samples": 32}, {"parts": 2}, {"sampler": "own"}]
)
def test_other_or_unknown_data_and_divided_data_are_quiet(changed: dict[str, Any]) -> None:
    ranks = saw(0, MEANS, LOSSES, **WHOLE), saw(1, MEANS[::-1], LOSSES, **WHOLE | changed)
    assert merged("ranks-see-same-data", *ranks).findings == ()


def test_too_few_batches_are_not_called_clear() -> None:
    few = saw(0, MEANS[:2], LOSSES[:2]), saw(1, MEANS[2:], LOSSES[2:])
    assert merged("ranks-see-same-data", *few).verdicts[0].outcome is Outcome.NOT_OBSERVED
    enough = saw(0, MEANS, LOSSES), saw(1, (0.5, 0.6, 0.7, 0.8), LOSSES[::-1])
    assert merged("ranks-see-same-data", *enough).verdicts[0].outcome is Outcome.CLEAR


LATER = (0.2, 0.3, 0.4, 0.5)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        pytest.param(MEANS, LATER, "1 step apart", id="one"),
        pytest.param(LATER, MEANS, "1 step apart", id="one back"),
        pytest.param(MEANS, (0.3, 0.4, 0.5, 0.6), "2 steps apart", id="two"),
    ],
)
def test_a_stream_that_is_read_from_different_starts_is_found(
    first: tuple[float, ...], second: tuple[float, ...], said: str
) -> None:
    ranks = saw(0, first, LOSSES), saw(1, second, (1.2, 1.3, 1.4, 1.5))
    (finding,) = merged("ranks-see-same-data", *ranks).findings
    assert finding.message == f"2 ranks train on the same batches, {said}"
    assert finding.primary.site == CALL
    assert finding.confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param((0.1, 0.2, 0.1, 0.2), (0.2, 0.1, 0.2, 0.1), id="parts that are passed on"),
        pytest.param(MEANS, (0.2, 0.3, 0.6, 0.7), id="some of them"),
        pytest.param(MEANS, (0.4, 0.5, 0.6, 0.7), id="one of them"),
    ],
)
def test_batches_that_come_again_otherwise_are_quiet(first: tuple[float, ...], second: tuple[float, ...]) -> None:
    ranks = saw(0, first, LOSSES), saw(1, second, (1.2, 1.3, 1.4, 1.5))
    assert merged("ranks-see-same-data", *ranks).findings == ()
