"""Summaries of several ranks: carried over, gathered, merged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from truestep.errors import BadRecord
from truestep.events import Site
from truestep.findings import Confidence, Finding, Mark, Outcome, Seen, Severity, Summary, Verdict
from truestep.report.closing import notes
from truestep.supervision.exchange import from_dict, to_dict
from truestep.supervision.ranks import Ranks, merge

SITE = Site("/home/me/train.py", 41, 8, 41, 24, "train")
FOUND = Finding(
    rule="missing-zero-grad",
    severity=Severity.ERROR,
    confidence=Confidence.HIGH,
    message="optimizer stepped on old gradients",
    primary=Mark(SITE, "step 1"),
    related=(Mark(None, "somewhere"), Mark(replace(SITE, line=38), "added")),
    seen=Seen(count=9, total=10, first_step=1),
    cost="41x",
    help="call it",
)
SUMMARY = Summary(
    script="train.py",
    how="finished",
    steps=10,
    findings=(FOUND, replace(FOUND, suppressed=True, rank=1, severity=Severity.WARNING)),
    verdicts=(Verdict("a", Outcome.FOUND), Verdict("b", Outcome.NOT_OBSERVED, "no scheduler")),
    internal_errors=("Traceback ...",),
    torch="2.13.0",
    missing_ranks=(3,),
)


def test_summary_survives_json() -> None:
    assert from_dict(json.loads(json.dumps(to_dict(SUMMARY)))) == SUMMARY


@pytest.mark.parametrize("wrong", [{}, {"findings": [{}]}, {"how": "finished"}, {"findings": 3, "verdicts": []}])
def test_damaged_summary_is_a_bad_record(wrong: dict[str, object]) -> None:
    with pytest.raises(BadRecord, match="summary of a run cannot be read"):
        from_dict(wrong)


def test_same_finding_of_all_ranks_is_one_with_counts_added() -> None:
    later = replace(FOUND, seen=Seen(count=5, total=10, first_step=0), confidence=Confidence.MEDIUM)
    merged = merge({0: replace(SUMMARY, findings=(FOUND,)), 1: replace(SUMMARY, findings=(later,))}, 2)
    assert merged.findings == (replace(FOUND, seen=Seen(count=14, total=20, first_step=0)),)
    assert (merged.ranks, merged.missing_ranks) == (2, ())


def test_finding_of_some_ranks_names_the_first() -> None:
    warning = replace(FOUND, rule="x", severity=Severity.WARNING, seen=Seen(count=1, first_step=0))
    parts = {
        0: replace(SUMMARY, findings=(warning,)),
        1: replace(SUMMARY, findings=(FOUND,)),
        2: replace(SUMMARY, findings=(replace(FOUND, seen=Seen(count=1)),)),
    }
    merged = merge(parts, 3)
    assert [(finding.rule, finding.rank, finding.seen.count, finding.seen.total) for finding in merged.findings] == [
        ("missing-zero-grad", 1, 10, None),
        ("x", 0, 1, None),
    ]


def test_verdict_is_the_strongest_and_missing_ranks_are_named() -> None:
    def verdicts(*outcomes: Outcome) -> tuple[Verdict, ...]:
        return tuple(Verdict(name, outcome) for name, outcome in zip("abc", outcomes, strict=True))

    zero = replace(SUMMARY, verdicts=verdicts(Outcome.CLEAR, Outcome.NOT_OBSERVED, Outcome.NOT_OBSERVED))
    two = replace(SUMMARY, verdicts=verdicts(Outcome.FOUND, Outcome.CLEAR, Outcome.NOT_OBSERVED), how="crashed")
    merged = merge({0: zero, 2: two}, 4)
    assert merged.verdicts == verdicts(Outcome.FOUND, Outcome.CLEAR, Outcome.NOT_OBSERVED)
    assert (merged.ranks, merged.missing_ranks, merged.how) == (4, (1, 3), "crashed")
    assert merged.internal_errors == ("rank 0: Traceback ...", "rank 2: Traceback ...")


def torchrun(rank: int, world_size: int = 2) -> dict[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": str(world_size), "TORCHELASTIC_RUN_ID": "a/../b", "MASTER_PORT": "29500"}


@pytest.mark.parametrize(
    "environment", [{}, {"RANK": "0"}, torchrun(0, 1), torchrun(5), {"RANK": "x", "WORLD_SIZE": "y"}]
)
def test_single_process_has_no_ranks(environment: dict[str, str]) -> None:
    assert Ranks.here(environment) is None


def test_ranks_of_one_launcher_meet_and_others_do_not(tmp_path: Path) -> None:
    first, second = Ranks.here(torchrun(0)), Ranks.here(torchrun(1))
    restarted = Ranks.here({**torchrun(0), "TORCHELASTIC_RESTART_COUNT": "1"})
    shared = Ranks.here(torchrun(1), tmp_path)
    assert first is not None
    assert second is not None
    assert restarted is not None
    assert shared is not None
    assert first.folder == second.folder != restarted.folder
    assert os.sep not in first.folder.name
    assert shared.folder.parent == tmp_path


def both(folder: Path) -> tuple[Ranks, Ranks]:
    zero, one = Ranks.here(torchrun(0), folder), Ranks.here(torchrun(1), folder)
    assert zero is not None
    assert one is not None
    return zero, one


def test_rank_0_gathers_and_tidies_up(tmp_path: Path) -> None:
    zero, one = both(tmp_path)
    zero.enter()
    one.enter()
    one.leave(SUMMARY)
    merged = zero.gather(SUMMARY)
    assert merged.missing_ranks == ()
    assert merged.findings[0].seen.count == 18
    assert list(tmp_path.iterdir()) == []
    one.leave(SUMMARY)
    assert list(tmp_path.iterdir()) == []


def test_summary_of_an_earlier_run_is_not_taken(tmp_path: Path) -> None:
    zero, one = both(tmp_path)
    one.enter()
    one.leave(SUMMARY)
    one.enter()
    zero.enter()
    assert zero.gather(SUMMARY, patience_s=0.1).missing_ranks == (1,)


def test_rank_whose_process_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    zero, one = both(tmp_path)
    zero.enter()
    one.enter()
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    presence = one.folder / "rank-1.process.json"
    presence.write_text(json.dumps({**json.loads(presence.read_text()), "process": child.pid}))
    began = time.monotonic()
    merged = zero.gather(SUMMARY)
    assert (merged.missing_ranks, merged.ranks_elsewhere) == ((1,), False)
    assert time.monotonic() - began < 2


def test_a_rank_that_never_came_to_the_folder_may_be_on_another_host(tmp_path: Path) -> None:
    zero, _ = both(tmp_path)
    zero.enter()
    merged = zero.gather(SUMMARY, patience_s=0.1)
    assert (merged.missing_ranks, merged.ranks_elsewhere) == ((1,), True)
    assert any("(1)" in note and "those of other hosts need --record DIR" in note for note in notes(merged))
    assert not any("--record" in note for note in notes(replace(merged, ranks_elsewhere=False)))


def test_torn_summary_counts_as_missing(tmp_path: Path) -> None:
    zero, one = both(tmp_path)
    zero.enter()
    one.enter()
    (one.folder / "rank-1.json").write_text('{"script": "tra')
    assert zero.gather(SUMMARY, patience_s=0.1).missing_ranks == (1,)
