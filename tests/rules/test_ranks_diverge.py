"""Weights of ranks that train one model and differ are found, with the cause; those that may differ are not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from of_ranks import CALL, CALLED, LOADER, MADE, MET, STEP, STEPPED, WRAP, WRAPPED, facts, joined, merged

from truestep import events as ev
from truestep.events import Event, Site
from truestep.findings import Outcome
from truestep.rules import RankRule, rule
from truestep.rules._of_ranks import place, site
from truestep.supervision.judge import Judge


def weights(*values: float) -> Event:
    return ev.WeightsRead(optimizer=1, parameters=(1, 2), values=(values, (0.5, 0.5)), site=STEP)


def trained(rank: int, *reads: tuple[float, ...], prepared: int = 1, before: tuple[Event, ...] = ()) -> dict[str, Any]:
    events: list[Event] = [joined(rank), *before]
    for number, values in enumerate(reads):
        replica = [ev.ReplicaRead(replica=1, optimizer=1, prepared=number * prepared)] if WRAPPED in before else []
        events += [CALLED, MADE, *replica, weights(*values), STEPPED]
    return facts("ranks-diverge", *events)


EQUAL = ((1.0, 2.0), (1.1, 2.1), (1.2, 2.2))
OTHER = ((1.0, 2.0), (1.2, 2.0), (1.4, 2.1))


def test_a_site_survives_json() -> None:
    here = Site("train.py", 3, 4, 5, 6, "main")
    assert site(json.loads(json.dumps(place(here)))) == here
    assert site(place(None)) is None


def test_weights_that_differ_although_they_are_wrapped_are_found() -> None:
    summary = merged(
        "ranks-diverge", *(trained(rank, *of, before=(WRAPPED,)) for rank, of in enumerate((EQUAL, OTHER)))
    )
    (finding,) = summary.findings
    assert finding.primary.site == STEP
    assert finding.message == "ranks have different weights in `weight`, which `DistributedDataParallel` keeps equal"
    assert (finding.seen.count, finding.seen.total, finding.seen.first_step) == (2, 2, 1)
    assert finding.cost == "the weights differ by 0.087 of their size at step 2"
    assert summary.verdicts[0].outcome is Outcome.FOUND


def test_a_model_that_is_called_beside_its_wrapper_is_the_cause() -> None:
    summary = merged(
        "ranks-diverge",
        *(trained(rank, *of, prepared=0, before=(WRAPPED,)) for rank, of in enumerate((EQUAL, OTHER))),
    )
    (finding,) = summary.findings
    assert finding.primary.site == CALL
    assert [mark.site for mark in finding.related] == [WRAP]
    assert "no call of the `DistributedDataParallel` wrapper" in finding.message


def test_other_learning_rates_are_named() -> None:
    ranks = [
        trained(rank, *of, before=(WRAPPED, ev.LearningRateRead(optimizer=1, rates=(rate,))))
        for rank, (of, rate) in enumerate(((EQUAL, 0.1), (OTHER, 0.05)))
    ]
    (finding,) = merged("ranks-diverge", *ranks).findings
    assert finding.primary.label == "different learning rates: 0.1 on rank 0, 0.05 on rank 1"


def part_of(loader: int, parts: int) -> tuple[Event, ...]:
    return ev.LoaderMet(loader=loader, name="loader", parts=parts, site=LOADER), ev.LoaderStarted(loader=loader)


def test_ranks_without_an_average_are_found_where_the_data_is_divided() -> None:
    apart = ((1.0, 2.0), (0.5, 0.5)), ((9.0, 5.0), (0.1, 0.2))
    ranks = []
    for rank, values in enumerate(apart):
        events: list[Event] = [joined(rank), *part_of(1, 2)]
        for _ in range(3):
            read = ev.WeightsRead(optimizer=1, parameters=(1, 2), values=values, site=STEP)
            events += [ev.BatchDrawn(loader=1), CALLED, MADE, read, STEPPED]
        ranks.append(facts("ranks-diverge", *events))
    (finding,) = merged("ranks-diverge", *ranks).findings
    assert "gradients are never averaged over ranks" in finding.message
    for one in ranks:
        one["ranks-diverge"]["divided"] = False
    assert merged("ranks-diverge", *ranks).findings == ()


@pytest.mark.parametrize(
    "before",
    [
        pytest.param((), id="no wrapper and no divided data"),
        pytest.param((WRAPPED, ev.ReplicaRead(replica=1, optimizer=1, hooked=True)), id="hook"),
    ],
)
def test_ranks_that_are_meant_to_differ_are_quiet(before: tuple[Event, ...]) -> None:
    ranks = (trained(rank, *of, before=before) for rank, of in enumerate((EQUAL, OTHER)))
    assert merged("ranks-diverge", *ranks).findings == ()


def test_equal_weights_rounding_and_averages_now_and_then_are_quiet() -> None:
    rounded = tuple(tuple(value + 1e-7 for value in values) for values in EQUAL)
    together = (EQUAL[0], OTHER[1], EQUAL[2])
    for other in (EQUAL, rounded, together):
        ranks = (trained(rank, *of, before=(WRAPPED,)) for rank, of in enumerate((EQUAL, other)))
        summary = merged("ranks-diverge", *ranks)
        assert summary.findings == ()
        assert summary.verdicts[0].outcome is Outcome.CLEAR


def test_one_rank_is_not_compared() -> None:
    summary = merged("ranks-diverge", trained(0, *EQUAL, before=(WRAPPED,)))
    assert summary.verdicts[0].outcome is Outcome.NOT_OBSERVED


def test_facts_are_those_of_a_group_only() -> None:
    judge = Judge([rule("ranks-diverge")])
    judge.show([*MET, weights(1.0, 2.0), STEPPED], (0, 1))
    assert judge.rank_facts() == {}
    assert issubclass(rule("ranks-diverge"), RankRule)


def test_groups_of_ranks_may_train_different_models() -> None:
    wrapped = ev.ReplicaWrapped(replica=1, ranks=(2, 3), parameters=(1, 2), site=WRAP)
    first = [trained(rank, *EQUAL, before=(WRAPPED,)) for rank in (0, 1)]
    second = [trained(rank, *OTHER, before=(WRAPPED, wrapped)) for rank in (2, 3)]
    for one in second:
        one["ranks-diverge"]["group"] = [2, 3]
    assert merged("ranks-diverge", *first, *second).findings == ()


def test_parameters_that_joined_the_model_later_are_the_cause() -> None:
    wrapped = ev.ReplicaWrapped(replica=1, ranks=(0, 1), parameters=(2,), site=WRAP)
    late = ev.ReplicaRead(replica=1, optimizer=1, prepared=1, outside=(1,))
    ranks = (trained(rank, *of, before=(wrapped, late)) for rank, of in enumerate((EQUAL, OTHER)))
    (finding,) = merged("ranks-diverge", *ranks).findings
    assert finding.message == "ranks have different weights in `weight`, added after the model was wrapped"


def test_averages_by_hand_of_different_weights_are_found() -> None:
    by_hand = ev.CollectiveCalled(operation="reduce", of="gradient", numbers=6)
    apart = [tuple((value, value + 1) for value in (start, start + 1)) for start in (1.0, 4.0)]
    ranks = []
    for rank, reads in enumerate(apart):
        events: list[Event] = [joined(rank), by_hand]
        for values in reads:
            read = ev.WeightsRead(optimizer=1, parameters=(1,), values=(values,), site=STEP)
            events += [CALLED, MADE, read, STEPPED]
        ranks.append(facts("ranks-diverge", *events))
    (finding,) = merged("ranks-diverge", *ranks).findings
    assert "they began with different ones" in finding.message


def test_models_that_differ_without_a_known_cause_are_not_called_clear() -> None:
    differ = merged("ranks-diverge", *(trained(rank, *of) for rank, of in enumerate((EQUAL, OTHER))))
    assert differ.findings == ()
    assert differ.verdicts[0].outcome is Outcome.NOT_OBSERVED
    equal = merged("ranks-diverge", *(trained(rank, *EQUAL) for rank in (0, 1)))
    assert equal.verdicts[0].outcome is Outcome.CLEAR


def test_a_conversion_after_the_wrapper_is_the_cause() -> None:
    recast = ev.ReplicaRead(replica=1, optimizer=1, prepared=2, recast="float64 on cpu")
    (finding,) = merged(
        "ranks-diverge",
        *(trained(rank, *of, before=(WRAPPED, recast)) for rank, of in enumerate((EQUAL, OTHER))),
    ).findings
    assert finding.message.endswith("a conversion of the wrapped model has ended its averages")
    assert "float64 on cpu" in finding.primary.label
    assert [mark.site for mark in finding.related] == [WRAP]


def test_windows_of_different_lengths_are_the_cause() -> None:
    (finding,) = merged(
        "ranks-diverge",
        *(
            trained(rank, *of, before=(WRAPPED, *[MADE] * passes))
            for rank, of, passes in ((0, EQUAL, 0), (1, OTHER, 3))
        ),
    ).findings
    assert finding.primary.label == "different windows: 1 backward passes for each step on rank 0, 2 on rank 1"
    assert finding.help == "step after the same number of backward passes on all ranks"
