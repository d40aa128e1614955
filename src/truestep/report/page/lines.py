"""Actions of each line of the user's files in a run, from the facts of the ledger and the counts of the timeline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from truestep import source
from truestep.accounts._account import amount
from truestep.findings import Summary

Place = tuple[str, int]
"""Path and line."""
_STATE = {"saved": "saved", "read": "loaded", "loaded": "loaded", "taken": "saved"}
_STATE_WORDS = {
    "saved": "saves a file",
    "read": "reads a file",
    "loaded": "loads weights",
    "taken": "takes a state dict",
}
_ORDERS = {"random": "shuffled", "sequential": "in the same order"}


@dataclass(frozen=True, slots=True)
class Did:
    """An action of a line in the run."""

    operation: str
    """Key of `duties.DUTIES`."""
    text: str
    """Facts, lower case, no full stop."""


def done(summary: Summary) -> dict[Place, list[Did]]:
    """Return the actions of each line, for the lines that took part in the training."""
    found: dict[Place, list[Did]] = {}
    readers = {
        "steps": _steps,
        "gradients": _gradients,
        "calls": _calls,
        "loss": _loss,
        "samples": _samples,
        "randomness": _randomness,
        "rate": _rate,
        "state": _state,
        "time": _time,
    }
    for line in summary.ledger:
        for site, did in readers.get(line.account, _nothing)(line.facts):
            if site is not None:
                found.setdefault((site["path"], site["line"]), []).append(did)
    for place, did in _counted(summary):
        found.setdefault(place, []).append(did)
    return {place: _with_purpose(dids) for place, dids in found.items()}


def _with_purpose(dids: list[Did]) -> list[Did]:
    """Return the actions of a line, with all facts of its calls under one purpose if they only evaluate."""
    if not any(did.operation == "evaluation" for did in dids) or any(" training call" in did.text for did in dids):
        return dids
    return [Did("evaluation", did.text) if did.operation == "forward" else did for did in dids]


_Found = Iterator[tuple[dict[str, Any] | None, Did]]


def _nothing(facts: dict[str, Any]) -> _Found:
    yield from ()


def times(count: int) -> str:
    """Return a number of times.

    >>> times(1), times(4400)
    ('once', '4,400 times')
    """
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def number(value: float) -> str:
    """Return a value with three digits.

    >>> number(0.00301), number(2.3041)
    ('0.00301', '2.3')
    """
    return f"{value:.3g}"


def _steps(facts: dict[str, Any]) -> _Found:
    for line in facts["lines"]:
        done = amount(line["steps"], "update" if line["kind"] == "hand" else "step")
        by = "by hand" if line["kind"] == "hand" else f"of {line['kind']}"
        empty = f", {line['without_gradients']:,} without gradients" if line["without_gradients"] else ""
        yield line["site"], Did("step", f"{done} {by}{empty}")


def _gradients(facts: dict[str, Any]) -> _Found:
    for line in facts["lines"]:
        parts = [amount(line["made"], "backward pass")]
        if line["used"] == line["made"] and not line["used_again"]:
            parts.append("all used once")
        elif line["used"]:
            parts.append(f"{line['used']:,} used")
        parts += [f"{line['used_again']:,} used again by later steps"] if line["used_again"] else []
        parts += [f"{line['skipped']:,} skipped by a scaler"] if line["skipped"] else []
        dropped = sum(one["passes"] for one in line["discarded"])
        parts += [f"{dropped:,} dropped unused"] if dropped else []
        yield line["site"], Did("backward", ", ".join(parts))
        for one in line["discarded"]:
            made = "" if line["site"] is None else f" of line {line['site']['line']}"
            yield one["by"], Did("clear", f"drops {amount(one['passes'], 'unused backward pass')}{made}")


def _calls(facts: dict[str, Any]) -> _Found:
    words = {"evaluation": "evaluation", "step": "other", "fixed": "fixed model"}
    for line in facts["lines"]:
        for one in line["training"]:
            yield (
                line["site"],
                Did("forward", f"{line['model']}: {amount(one['calls'], 'training call')} in {one['mode']} mode"),
            )
        for one in line["others"]:
            graphs = "graphs recorded and not used" if one["graphs"] else "no gradients"
            purpose = words.get(line["purpose"], "other")
            operation = "evaluation" if line["purpose"] == "evaluation" else "forward"
            text = f"{line['model']}: {amount(one['calls'], 'call')} ({purpose}) in {one['mode']} mode, {graphs}"
            yield line["site"], Did(operation, text)


def _loss(facts: dict[str, Any]) -> _Found:
    for line in facts["lines"]:
        chance = "" if line["chance"] is None else f" (a guess: {number(line['chance'])})"
        text = f"{line['kind']}: {number(line['first'])} at first{chance}, {number(line['last'])} at last"
        yield line["site"], Did("backward", text)


def _samples(facts: dict[str, Any]) -> _Found:
    for loader in facts.get("loaders", ()):
        order = _ORDERS.get(loader["order"], "")
        text = f"{amount(loader['passes'], 'pass')}, {amount(loader['batches'], 'batch')}" + (
            f", {order}" if order else ""
        )
        yield loader["site"], Did("data", text)
    for one in facts.get("unread", ()):
        yield one["site"], Did("data", f"{one['name']} is never read")
    for one in facts.get("inputs", ()):
        shape = "x".join(map(str, one["shape"]))
        text = f"inputs {number(one['mean'])} ± {number(one['spread'])}, {one['dtype']} {shape}"
        yield one["site"], Did("forward", text)


def _randomness(facts: dict[str, Any]) -> _Found:
    words = {"layers": "on", "function": "on, by a function in eval mode,", "off": "off"}
    for one in facts["dropout"]:
        yield one["site"], Did("forward", f"dropout {words[one['by']]} in {amount(one['calls'], 'call')}")


def _rate(facts: dict[str, Any]) -> _Found:
    for line in facts["lines"]:
        first, last = (_rates(line[key]) for key in ("first", "last"))
        course = f"{first} throughout" if first == last and line["least"] == line["most"] else f"{first} to {last}"
        yield (
            line["site"],
            Did("optimizer", f"{line['kind']}: learning rate {course}, {amount(line['updates'], 'update')}"),
        )
        for one in line["schedules"]:
            yield one["site"], Did("schedule", f"{one['kind']}: {amount(one['steps'], 'step')}")


def _rates(rates: list[float]) -> str:
    return " and ".join(dict.fromkeys(map(number, rates))) if len(set(rates)) <= 3 else f"of {len(rates)} groups"


def _state(facts: dict[str, Any]) -> _Found:
    for line in facts["lines"]:
        yield line["site"], Did(_STATE[line["what"]], f"{_STATE_WORDS[line['what']]} {times(line['count'])}")


def _time(facts: dict[str, Any]) -> _Found:
    for one in facts["loaders"]:
        share = f" ({one['waited_s'] / one['span_s']:.0%})" if one["span_s"] else ""
        yield one["site"], Did("data", f"the run waited {one['waited_s']:.1f} of {one['span_s']:.1f} s for it{share}")


def _counted(summary: Summary) -> Iterator[tuple[Place, Did]]:
    """Yield the operations that no account counts by line."""
    if summary.timeline is None:
        return
    for (kind, site, detail), count in summary.timeline.counts().items():
        often = times(count)
        did = {
            "ModeSet": Did(f"{detail} mode", f"sets {detail} mode {often}"),
            "GradientsZeroed": Did("clear", f"clears the gradients of {detail} {often}"),
            "GradientsClipped": Did("clip", f"clips gradients {often} ({detail})"),
            "GradientsUnscaled": Did("unscale", f"unscales gradients {often}"),
            "GradientsTaken": Did("backward", f"torch.autograd.grad {often}"),
            "SchedulerStepped": Did("schedule", f"steps {detail} {often}"),
            "LossComputed": Did("loss", f"computes {detail} {often}"),
            "Seeded": Did("seed", f"sets a seed {often}"),
        }.get(kind)
        if did is not None:
            yield (site.path, site.line), did


def where(place: Place) -> str:
    """Return a place for people."""
    return f"{source.posix(source.displayed(place[0]))}:{place[1]}"
