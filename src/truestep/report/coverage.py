"""Sentences about how much of a training a run covered; they precede the counts if it was not all of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from truestep import source
from truestep.findings import Outcome, Summary

_FEW_STEPS = 10
_NO_GRADIENT = "no optimizer step used a gradient"
_ENDS = {
    "crashed": "the script ended with {error}",
    "interrupted": "the script was interrupted",
    "stopped": "the script was stopped",
    "exited": "the script called sys.exit",
    "unfinished": "its record breaks off",
}


@dataclass(frozen=True, slots=True)
class Limit:
    """One reason why a run covered less than a whole training."""

    slug: str
    text: str
    """A fact, lower case, no full stop."""


def extent(summary: Summary) -> Literal["nothing", "little", "part", "whole"]:
    """Return how much the rules could observe: without a step on a gradient nothing, or little if some are clear."""
    if not summary.steps or not summary.coverage.fed:
        clear = any(verdict.outcome is not Outcome.NOT_OBSERVED for verdict in summary.verdicts)
        return "little" if clear else "nothing"
    cut = summary.how in _ENDS or summary.missing_ranks or summary.steps < _FEW_STEPS
    return "part" if cut else "whole"


def limits(summary: Summary) -> list[Limit]:
    """Return the limits of a report, the most severe first.

    >>> limits(Summary("train.py", "interrupted", steps=40))
    [Limit(slug='interrupted', text='the script was interrupted after 40 steps')]
    """
    if not summary.steps:
        return [_without_a_step(summary)]
    found = []
    if summary.how in _ENDS:
        found.append(Limit(summary.how, f"{_end(summary)} after {steps(summary)}"))
    elif summary.steps < _FEW_STEPS:
        found.append(Limit("few-steps", f"the script made {steps(summary)}"))
    if not summary.coverage.fed:
        found.append(Limit("no-gradient-used", _NO_GRADIENT))
    if summary.coverage.chance is not None:
        found.append(Limit("loss-at-chance", f"the loss never left chance ({_chance(summary)})"))
    return found


def verdict(summary: Summary, failures: int) -> str:
    """Return the first part of the headline: the number of failures, and how much of a training was covered."""
    other = "" if summary.post_mortem is None else "other "
    if failures:
        return f"{failures} {other}{'failure' if failures == 1 else 'failures'} found"
    if not summary.steps:
        if summary.post_mortem is not None:  # the crash itself is explained
            return "no other failure found before the first step"
        return f"{extent(summary)} was checked: {limits(summary)[0].text}"
    where = ""
    if summary.how in _ENDS:
        where = f" in the {steps(summary)} before {_end(summary)}"
    elif summary.steps < _FEW_STEPS:
        where = f" in {steps(summary)}"
    first = ""
    if not summary.coverage.fed:
        first = _NO_GRADIENT
    elif summary.coverage.chance is not None:
        first = f"the loss never left chance ({_chance(summary)})"
    return f"{first}, and no {other}failure was found{where}" if first else f"no {other}failure found{where}"


def notes(summary: Summary, failures: int) -> list[str]:
    """Return notes on limits that `verdict` does not mention, and on their consequences."""
    cut = summary.how in _ENDS
    silent = "rules about whole runs say nothing"
    reported = failures or (summary.post_mortem is not None and not summary.steps)
    judged = summary.how == "exited"  # some rules about whole runs accept sys.exit as a normal end
    if not reported:
        return [f"{silent} of a run that was cut short"] if cut and summary.steps and not judged else []
    found = [limit.text for limit in limits(summary) if limit.slug != "few-steps"]
    if cut and not judged:
        found[0] += f"; {silent}"
    return found


def steps(summary: Summary) -> str:
    """Return the number of steps as text."""
    return "1 step" if summary.steps == 1 else f"{summary.steps} steps"


def _without_a_step(summary: Summary) -> Limit:
    """Return the reason for a run without an optimizer step."""
    coverage = summary.coverage
    imported = bool(summary.torch or summary.verdicts)
    if not imported and summary.internal_errors:
        return Limit("internal-error", "watching failed to start")
    if summary.how in _ENDS:
        before = "before its first step" if imported else "before it imported torch"
        return Limit(f"{summary.how}-before-first-step", f"{_end(summary)} {before}")
    if not imported:
        return Limit("torch-not-imported", "the script never imported torch")
    if coverage.processes:
        amount = "the process" if coverage.processes == 1 else f"the {coverage.processes} processes"
        site, verb = coverage.started, "is" if coverage.processes == 1 else "are"
        place = "" if site is None else f" at {source.posix(source.displayed(site.path))}:{site.line}"
        text = f"no optimizer step in this process, and {amount} started{place} {verb} not watched"
        return Limit("other-processes", text)
    if not coverage.called and not coverage.backward:
        return Limit("no-model-call", "no model was called")
    if not coverage.backward:
        return Limit("no-backward-pass", "no backward pass was seen")
    return Limit("no-optimizer-step", "no optimizer step was seen")


def _end(summary: Summary) -> str:
    error = summary.coverage.error.partition(":")[0] or "an error"
    return _ENDS[summary.how].format(error=error)


def _chance(summary: Summary) -> str:
    chance = summary.coverage.chance
    assert chance is not None
    return f"about {chance.loss:.3g} at step {chance.step}, as for a guess among {chance.classes} classes"
