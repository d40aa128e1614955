"""Two ranks on gloo: one report of all ranks, healthy runs silent, failures found, a dead rank named.

The launcher is torchrun where healthy ranks and a dead one are tested; it starts each rank cold, which takes seconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from programs import expected
from several_ranks import torchrun, warm_ranks

PROGRAMS = Path(__file__).parent / "programs"
Launcher = Callable[[list[str], Path], tuple[int, str, str]]


@dataclass
class Run:
    code: int
    out: str
    err: str
    report: dict[str, Any]

    @property
    def found(self) -> set[tuple[str, int]]:
        sure = [finding for finding in self.report["findings"] if finding["confidence"] != "low"]
        return {(finding["rule"], finding["primary"]["site"]["line"]) for finding in sure}


def watch(name: str, folder: Path, *arguments: str, options: tuple[str, ...] = (), launch: Launcher = torchrun) -> Run:
    report = folder / "report.json"
    watching = ["-m", "truestep", "run", "--format", "json", "--output", str(report), *options]
    code, out, err = launch([*watching, str(PROGRAMS / f"{name}.py"), *arguments], folder)
    assert report.exists(), err
    return Run(code, out, err, json.loads(report.read_text(encoding="utf-8")))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ddp_healthy", "fsdp1_healthy", "fsdp2_healthy"])
def test_healthy_ranks_are_quiet_and_unchanged(name: str, tmp_path: Path) -> None:
    run = watch(name, tmp_path)
    assert run.code == 0, run.err
    assert run.found == set()
    assert run.report["internal_errors"] == []
    assert (run.report["ended"], run.report["ranks"], run.report["missing_ranks"]) == ("finished", 2, [])
    assert run.report["steps"] >= 20
    # FSDP2 gathers parameters: the tape names those, and is read all the same.
    verdicts = {verdict["rule"]: verdict["outcome"] for verdict in run.report["verdicts"]}
    assert verdicts["graph-cut"] == verdicts["parameters-not-optimized"] == "clear"
    assert torchrun([str(PROGRAMS / f"{name}.py")], tmp_path)[:2] == (0, run.out)
    assert [path.name for path in tmp_path.glob("truestep-ranks-*")] == []


@pytest.mark.parametrize(
    "name", ["ddp_missing_zero_grad", pytest.param("fsdp2_missing_zero_grad", marks=pytest.mark.slow)]
)
def test_failure_of_all_ranks_is_one_finding(name: str, tmp_path: Path) -> None:
    run = watch(name, tmp_path, options=("--record", "rec"), launch=warm_ranks)
    assert run.code == 0, run.err
    assert run.found == expected(PROGRAMS / f"{name}.py")
    (finding,) = run.report["findings"]
    assert finding["seen"]["total"] == 2 * run.report["steps"] == 48
    assert finding["seen"]["count"] >= 40
    assert run.report["internal_errors"] == []
    assert run.err.count("error[missing-zero-grad]") == 1
    assert run.report["ranks"] == 2
    assert sorted(path.name for path in (tmp_path / "rec").iterdir()) == ["rank-0.jsonl", "rank-1.jsonl"]


@pytest.mark.program
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param((), id="flat", marks=pytest.mark.slow),
        pytest.param(("original", "window"), id="original window"),
        *(
            pytest.param(arguments, id=" ".join(arguments), marks=pytest.mark.slow)
            for arguments in (("original",), ("original", "early"), ("window",))
        ),
    ],
)
def test_gradients_that_fsdp1_makes_again_over_those_of_before_are_mixed(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    run = watch("fsdp1_missing_zero_grad", tmp_path, *arguments, launch=warm_ranks)
    assert run.code == 0, run.err
    assert run.found == expected(PROGRAMS / "fsdp1_missing_zero_grad.py")
    (finding,) = run.report["findings"]
    assert finding["seen"]["count"] >= 30
    assert run.report["internal_errors"] == []


@pytest.mark.program
def test_dead_rank_is_named(tmp_path: Path) -> None:
    run = watch("dead_rank", tmp_path)
    assert run.code != 0
    assert run.report["missing_ranks"] == [1]
    assert run.report["ended"] in ("interrupted", "crashed")
    assert run.found == expected(PROGRAMS / "dead_rank.py")
    assert any("1 of 2 ranks (1)" in note for note in run.report["notes"])
