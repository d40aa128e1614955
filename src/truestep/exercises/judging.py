"""Judge the file of a user: a script by supervision and its metric, written functions by their behaviour."""

from __future__ import annotations

import enum
import json
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truestep.exercises import child
from truestep.exercises.catalogue import FunctionsToWrite, PlantedFailure

LIMIT_S = 180.0
"""Seconds after which a script is stopped; each exercise takes a few."""


class Answer(enum.StrEnum):
    """The judgement of a script with a planted failure."""

    MENDED = "mended"
    STILL_THERE = "still there"
    """The failure is found, or the rule that finds it was switched off."""
    ANOTHER = "another failure"
    """It is mended, and another failure of severity error is found."""
    METRIC = "metric"
    """Nothing is found, and the metric is not that of a mended script."""
    UNTRAINED = "untrained"
    """Nothing is found, because the script makes no optimizer step."""
    NO_METRIC = "no metric"
    CRASHED = "crashed"
    ENDLESS = "endless"


@dataclass(frozen=True, slots=True)
class ScriptJudgement:
    """The judgement of a script, with the facts behind it."""

    answer: Answer
    metric: float | None = None
    other: str = ""
    """Message of another failure, with its line."""
    error: str = ""
    """End of the standard error of a script that crashed."""
    switched_off: bool = False
    """True if a comment or the configuration allows the failure."""


def judge_script(exercise: PlantedFailure, path: Path, seconds: float = LIMIT_S) -> ScriptJudgement:
    """Run a script under supervision, and return whether its failure is mended.

    Args:
        exercise: the exercise.
        path: the file of the user.
        seconds: limit of the run.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = ["-m", "truestep", "run", "--format", "json", "--output", str(report), str(path.absolute())]
        ended = child.run(command, folder=path.absolute().parent, seconds=seconds)
        if ended.code is None:
            return ScriptJudgement(Answer.ENDLESS)
        if ended.code or not report.exists():
            return ScriptJudgement(Answer.CRASHED, error=_error(ended.err))
        found = json.loads(report.read_text(encoding="utf-8"))
    return _judged(exercise, found, _metric(exercise.metric, ended.out))


def _judged(exercise: PlantedFailure, report: dict[str, Any], metric: float | None) -> ScriptJudgement:
    findings = report["findings"]
    planted = [finding for finding in findings if finding["rule"] == exercise.rule]
    if not planted and not report["steps"]:
        return ScriptJudgement(Answer.UNTRAINED, metric)
    off = exercise.rule not in {verdict["rule"] for verdict in report["verdicts"]}
    if planted or off:
        switched_off = off or all(finding["suppressed"] for finding in planted)
        return ScriptJudgement(Answer.STILL_THERE, metric, switched_off=switched_off)
    for finding in findings:
        if finding["severity"] == "error" and not finding["suppressed"]:
            site = finding["primary"]["site"]
            return ScriptJudgement(Answer.ANOTHER, metric, other=f"line {site['line']}: {finding['message']}")
    if metric is None:
        return ScriptJudgement(Answer.NO_METRIC)
    low, high = exercise.healthy
    return ScriptJudgement(Answer.MENDED if low <= metric <= high else Answer.METRIC, metric)


def _metric(name: str, output: str) -> float | None:
    """Return the last value of a metric in an output.

    >>> _metric("test accuracy", "epoch 1\\ntest accuracy: 0.5\\ntest accuracy: 0.9125\\n")
    0.9125
    """
    values = re.findall(rf"^{re.escape(name)}: (-?[\d.]+(?:e[+-]?\d+)?|nan|-?inf)\s*$", output, re.MULTILINE)
    return float(values[-1]) if values else None


def _error(text: str) -> str:
    """Return the traceback of the script, without the report of TrueStep."""
    lines = [line for line in text.splitlines() if not line.startswith("truestep: ")]
    return "\n".join(lines[-12:]).strip()


@dataclass(frozen=True, slots=True)
class BehaviourCheck:
    """One check of a written function."""

    title: str
    """The behaviour that is checked."""
    passed: bool
    message: str = ""
    """The reason for a check that did not pass."""


def judge_functions(exercise: FunctionsToWrite, path: Path, seconds: float = LIMIT_S) -> list[BehaviourCheck]:
    """Run the checks of an exercise on a file, in a child process, and return their results.

    Args:
        exercise: the exercise.
        path: the file of the user.
        seconds: limit of all checks together.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.jsonl")
        command = ["-m", "truestep.exercises.behaviour", exercise.file.removesuffix(".py")]
        ended = child.run([*command, str(path.absolute()), str(result)], folder=path.absolute().parent, seconds=seconds)
        lines = result.read_text(encoding="utf-8").splitlines() if result.exists() else []
    checks = [BehaviourCheck(*json.loads(line)) for line in lines]
    if ended.code is None:
        checks.append(BehaviourCheck("the code ends", False, f"it still ran after {seconds:.0f} s, and was stopped"))
    elif ended.code:
        checks.append(BehaviourCheck("the code runs", False, _error(ended.err)))
    return checks
