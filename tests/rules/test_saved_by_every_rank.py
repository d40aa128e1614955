"""A file that two ranks of one machine write is found."""

from __future__ import annotations

from typing import Any

from of_ranks import SAVE, STEPPED, facts, merged

from truestep import events as ev
from truestep.findings import Outcome


def saves(rank: int, *paths: str, host: str = "here") -> dict[str, Any]:
    group = ev.GroupJoined(rank=rank, world_size=2, host=host)
    saved = [ev.CheckpointSaved(site=SAVE, path=path) for path in paths]
    return facts("saved-by-every-rank", group, STEPPED, *saved)


def test_a_file_of_two_ranks_is_found() -> None:
    (finding,) = merged("saved-by-every-rank", saves(0, "/a/last.pt", "/a/x.pt"), saves(1, "/a/last.pt")).findings
    assert finding.message == "2 ranks write the same file: `last.pt`"
    assert finding.primary.site == SAVE
    assert finding.seen.first_step == 1


def test_files_of_different_names_or_machines_are_quiet() -> None:
    assert merged("saved-by-every-rank", saves(0, "/a/0.pt"), saves(1, "/a/1.pt")).findings == ()
    assert merged("saved-by-every-rank", saves(0, "/a/0.pt"), saves(1, "/a/0.pt", host="there")).findings == ()
    assert merged("saved-by-every-rank", saves(0, "/dev/null"), saves(1, "/dev/null")).findings == ()


def test_ranks_without_a_file_are_not_called_clear() -> None:
    assert merged("saved-by-every-rank", saves(0), saves(1)).verdicts[0].outcome is Outcome.NOT_OBSERVED
    assert merged("saved-by-every-rank", saves(0, "/a/0.pt"), saves(1)).verdicts[0].outcome is Outcome.CLEAR
