"""Parts of gradients that each rank clips by its own norm are found; whole ones, and norms below the limit, are not."""

from __future__ import annotations

from typing import Any

import pytest
from of_ranks import STEPPED, facts, joined, merged

from truestep import events as ev
from truestep.events import Event, Site
from truestep.findings import Outcome, Verdict

CLIP = Site("train.py", 18)


def clipped(rank: int, *norms: float, limit: float = 1.0) -> dict[str, Any]:
    """Facts of a rank that clips parts of these norms, one in each step."""
    events: list[Event] = [joined(rank)]
    for norm in norms:
        events += [ev.PartsClipped(norm=norm, max_norm=limit, site=CLIP), STEPPED]
    return facts("clipped-per-rank", *events)


def test_parts_with_different_norms_above_the_limit_are_found() -> None:
    summary = merged("clipped-per-rank", clipped(0, 2.0, 3.0), clipped(1, 1.5, 4.0))
    (finding,) = summary.findings
    assert finding.primary.site == CLIP
    assert finding.message == "each of 2 ranks clips its part of the gradients by the norm of this part"
    assert finding.primary.label == "norms of 2 and 1.5, and 2.5 together, at step 0"
    assert finding.cost == "the clipped gradient has a norm of 1.4; the limit is 1"
    assert (finding.seen.count, finding.seen.total, finding.seen.first_step) == (2, 2, 0)


def test_a_rank_that_does_not_clip_beside_one_that_does_is_found() -> None:
    (finding,) = merged("clipped-per-rank", clipped(0, 9.0, 9.0), clipped(1, 0.5, 0.5)).findings
    assert finding.cost == "the clipped gradient has a norm of 1.1; the limit is 1"


def verdict(*of_ranks: dict[str, Any]) -> Verdict:
    summary = merged("clipped-per-rank", *of_ranks)
    assert summary.findings == ()
    return summary.verdicts[0]


def test_whole_gradients_on_each_rank_are_clear() -> None:
    assert verdict(clipped(0, 2.0, 3.0), clipped(1, 2.0, 3.0)).outcome is Outcome.CLEAR


@pytest.mark.parametrize(
    ("first", "second"),
    [((0.2, 0.3), (0.3, 0.2)), ((2.0, 0.3), (3.0, 0.2)), ((2.0,), (3.0,)), ((2.0, 3.0), (0.0, 0.0))],
    ids=["below the limit", "above it once", "one step", "all on one rank"],
)
def test_too_little_evidence_is_not_observed(first: tuple[float, ...], second: tuple[float, ...]) -> None:
    assert verdict(clipped(0, *first), clipped(1, *second)).outcome is Outcome.NOT_OBSERVED


def test_a_rank_that_is_missing_leaves_it_open() -> None:
    events = [ev.GroupJoined(rank=0, world_size=3, host="here")]
    for _ in range(2):
        events += [ev.PartsClipped(norm=2.0 + len(events), max_norm=1.0, site=CLIP), STEPPED]  # type: ignore[list-item]
    ranks = [facts("clipped-per-rank", *events), facts("clipped-per-rank", *events[1:], joined(1))]
    assert merged("clipped-per-rank", *ranks).verdicts[0].outcome is Outcome.NOT_OBSERVED
