"""Law 5: a record replays to the same findings and verdicts, where torch cannot even be imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from programs import supervise
from tiers import only
from torch import nn

from truestep import events as ev
from truestep.config import Options
from truestep.errors import BadRecord
from truestep.rules import all_rules
from truestep.supervision import Session
from truestep.supervision import record as records
from truestep.supervision.judge import Judge
from truestep.supervision.record import LIMIT_BYTES, Recorder, read
from truestep.supervision.stream import SHOWINGS, EventStream

ROOT = Path(__file__).resolve().parents[2]
PROOFS = (
    "missing-zero-grad", "clip-after-step", "loss-kept-with-graph", "train-mode-not-restored", "broadcast-target",
    "scheduler-wrong-cadence", "parameters-not-optimized", "no-grad-missing",
)  # fmt: skip
SAME = ("script", "ended", "steps", "torch", "ranks", "findings", "verdicts", "internal_errors")
WITHOUT_TORCH = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numpy"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
from truestep.cli import main
sys.argv = ["truestep", "replay", *sys.argv[1:]]
main()
"""


def replayed(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-c", WITHOUT_TORCH, str(folder), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=ROOT)
    assert done.stderr == ""
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("rule", only(PROOFS[:1], PROOFS))
def test_a_record_replays_to_the_same_report_without_torch(rule: str, tmp_path: Path) -> None:
    run = supervise(ROOT / "proofs" / rule / "bad.py", record=tmp_path / "record")
    first, second = run.report, replayed(tmp_path / "record")
    assert [finding["rule"] for finding in first["findings"] if not finding["explained_by"]] == [rule]
    assert {name: second[name] for name in SAME} == {name: first[name] for name in SAME}


def train(steps: int, *, failing: bool = True, seed: int = 0) -> None:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    x, y = torch.randn(8, 4), torch.randn(8)
    for step in range(steps):
        if not failing or step % 100 == 0:
            optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x)[:, 0], y)
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            model(x)


def recorded(folder: Path, program: Callable[[], None]) -> tuple[Any, Any]:
    with Session(Options(record=folder), script="train.py") as session:
        program()
    return session.stop(), read(folder)


@pytest.mark.program
def test_a_long_run_is_small_and_exact(tmp_path: Path) -> None:
    first, second = recorded(tmp_path, lambda: train(5000))
    assert first == second
    assert first.steps == 5000
    assert max(finding.seen.count for finding in first.findings) > 4900
    assert (tmp_path / "rank-0.jsonl").stat().st_size < LIMIT_BYTES / 50


def test_the_same_run_gives_the_same_record(tmp_path: Path) -> None:
    """Sampling follows step numbers, never the clock."""
    texts = []
    for name, slow in (("one", 0.0), ("two", 0.003)):

        def program(slow: float = slow) -> None:
            for _ in range(2):
                train(30)
                time.sleep(slow)

        recorded(tmp_path / name, program)
        texts.append((tmp_path / name / "rank-0.jsonl").read_text(encoding="utf-8"))
    assert texts[0] == texts[1]


def test_a_run_without_a_failure_replays_to_clear_verdicts(tmp_path: Path) -> None:
    first, second = recorded(tmp_path, lambda: train(60, failing=False))
    assert first == second
    assert {verdict.outcome.value for verdict in first.verdicts} >= {"clear", "not-observed"}


def test_why_watching_ended_early_is_in_the_record(tmp_path: Path) -> None:
    with Session(Options(record=tmp_path), script="train.py") as session:
        train(20, failing=False)
        session._scene.lose_sight("several threads train at once")
    assert session.stop() == read(tmp_path)
    assert {verdict.reason for verdict in read(tmp_path).verdicts} >= {"several threads train at once"}


def test_given_up_close_reading_is_in_the_record(tmp_path: Path) -> None:
    with Session(Options(record=tmp_path), script="train.py") as session:
        train(20, failing=False)
        session._scene.sampling.give_up("close reading given up at step 20, over the budget of 1%")
    assert session.stop() == read(tmp_path)


@pytest.mark.program
def test_when_the_record_is_full_findings_still_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "LIMIT_BYTES", 20_000)
    monkeypatch.setattr(Recorder.__init__, "__kwdefaults__", {"limit_bytes": 20_000})

    def program() -> None:
        for seed in range(6):
            train(120, seed=seed)

    first, second = recorded(tmp_path, program)
    assert (tmp_path / "rank-0.jsonl").stat().st_size < 25_000
    assert {finding.rule for finding in second.findings} == {finding.rule for finding in first.findings}


# --- the stream, with events made by hand --------------------------------------------------------------------------


class Lines:
    """A log that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[tuple[Any, ...]] = []

    def show(self, number: int, events: tuple[ev.Event, ...], key: tuple[int, int], *, fired: bool) -> None:
        self.lines.append(("show", key, fired))

    def again(self, key: tuple[int, int], times: int) -> None:
        self.lines.append(("again", key, times))

    def forget(self) -> None:
        self.lines.append(("forget",))


def stream() -> tuple[EventStream, Judge, Lines]:
    judge, log = Judge(all_rules().values()), Lines()
    return EventStream(judge, log), judge, log


SITE = ev.Site("train.py", 7)
BACKWARD = ev.BackwardEnded(site=SITE, observed=2, written=2, onto_used=2)
STEP = ev.OptimizerStepped(optimizer=1, site=SITE, observed=2, mixed=2)
CLEAN = ev.OptimizerStepped(optimizer=1, site=SITE, observed=2, fresh=2)


def feed(to: EventStream, steps: int, *events: ev.Event) -> None:
    for _ in range(steps):
        for event in events[:-1]:
            to.take(event)
        to.step(events[-1])


@pytest.mark.parametrize("steps", [100, 10_000, 100_000])
def test_repeated_steps_cost_a_constant_number_of_lines(steps: int) -> None:
    to, judge, log = stream()
    feed(to, steps, BACKWARD, STEP)
    to.settle()
    assert len(log.lines) == 1 + SHOWINGS + 1
    assert judge.progress.step == steps
    assert sum(line[2] for line in log.lines if line[0] == "again") == steps - 1 - SHOWINGS


def test_counts_of_findings_include_the_steps_that_were_only_counted() -> None:
    to, judge, _ = stream()
    feed(to, 50_000, BACKWARD, STEP)
    to.settle()
    (finding,) = (finding for finding in judge.findings() if finding.rule == "missing-zero-grad")
    assert finding.seen.count in (49_999, 50_000)


def test_steps_that_alternate_cost_a_constant_number_of_lines() -> None:
    to, judge, log = stream()
    for _ in range(20_000):
        feed(to, 1, BACKWARD, STEP)
        feed(to, 2, BACKWARD, CLEAN)
    to.settle()
    assert len(log.lines) < 30
    assert judge.progress.step == 60_000


def test_a_finding_after_a_million_equal_steps_is_seen() -> None:
    to, judge, log = stream()
    feed(to, 200_000, BACKWARD, CLEAN)
    feed(to, 3, BACKWARD, STEP)
    to.settle()
    (finding,) = (finding for finding in judge.findings() if finding.rule == "missing-zero-grad")
    assert finding.seen.first_step in (200_000, 200_001)
    assert len(log.lines) < 15


@pytest.mark.program
def test_steps_that_all_differ_are_forgotten_in_time() -> None:
    to, judge, log = stream()
    for number in range(9000):
        feed(to, 1, ev.BackwardEnded(site=SITE, observed=number), CLEAN)
    to.settle()
    assert ("forget",) in log.lines
    assert judge.progress.step == 9000
    assert len(judge._credits) <= 4000


# --- damage --------------------------------------------------------------------------------------------------------


@pytest.fixture
def record(tmp_path: Path) -> Path:
    recorded(tmp_path, lambda: train(12))
    return tmp_path / "rank-0.jsonl"


def test_a_record_cut_short_anywhere_in_its_last_line_is_read(record: Path) -> None:
    whole = record.read_text(encoding="utf-8")
    lines = whole.splitlines(keepends=True)
    before = "".join(lines[:-1])
    for cut in range(0, len(lines[-1]) - 1, 7):
        record.write_text(before + lines[-1][:cut], encoding="utf-8")
        summary = read(record.parent)
        assert (summary.how, summary.steps) == ("unfinished", 12)
        assert summary.findings


def test_a_record_cut_short_after_any_line_is_read(record: Path) -> None:
    lines = record.read_text(encoding="utf-8").splitlines(keepends=True)
    for count in range(1, len(lines)):
        record.write_text("".join(lines[:count]), encoding="utf-8")
        assert read(record.parent).how == "unfinished"


DAMAGES: dict[str, Callable[[list[str]], list[str]]] = {
    "no first line": lambda lines: lines[1:],
    "empty": lambda lines: [],
    "text": lambda lines: ["hello\n"],
    "another format": lambda lines: ['{"format":"other/1","started":{}}\n', *lines[1:]],
    "a torn line in the middle": lambda lines: [*lines[:4], lines[4][:10] + "\n", *lines[5:]],
    "a list": lambda lines: [*lines[:4], "[1]\n", *lines[5:]],
    "an event of no kind": lambda lines: [*lines[:2], '{"event":0,"is":"Nothing"}\n', *lines[2:]],
    "an event with no such field": lambda lines: [*lines[:2], '{"event":0,"is":"RunEnded","why":1}\n'],
    "a chunk of unknown events": lambda lines: [*lines[:2], '{"chunk":900,"events":[77777]}\n'],
    "an unknown chunk": lambda lines: [*lines[:2], '{"show":[0,9999]}\n'],
    "an unknown site": lambda lines: [*lines[:2], '{"event":0,"is":"LoaderStarted","loader":1,"site":999}\n'],
    "a site that is none": lambda lines: [*lines[:2], '{"site":0,"at":5}\n'],
    "a number for a list": lambda lines: [*lines[:2], '{"chunk":1,"events":3}\n'],
    "words for numbers": lambda lines: [*lines[:2], '{"again":["a","b"],"times":"c"}\n'],
    "bytes": lambda lines: [*lines[:2], "\udcff\udcfe\n", *lines[2:]],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_record_is_refused(record: Path, damage: Callable[[list[str]], list[str]]) -> None:
    lines = record.read_text(encoding="utf-8").splitlines(keepends=True)
    record.write_text("".join(damage(lines)), encoding="utf-8", errors="surrogateescape")
    with pytest.raises(BadRecord):
        read(record.parent)


def test_no_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRecord, match="no record"):
        read(tmp_path)


def test_a_disk_that_is_full_does_not_reach_the_program(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    os.symlink("/dev/full", tmp_path / "rank-0.jsonl")
    with Session(Options(record=tmp_path)) as session:
        train(12)
    assert session.steps == 12
    assert session.findings
