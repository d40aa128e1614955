"""Latencies of the ways to run a model, judged against eager."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from truestep.experiments.figures.speedup_statistics import MARGIN, Judged, SpeedVerdict, judge

CONTROL = "control"
DIFFERS = "differs"
_NO_ADVICE = ("with gradients",)
"""Ways that are measured to show a cost."""


@dataclass(frozen=True, slots=True)
class WayRow:
    """One way at one setting.

    Attributes:
        name: name of the way.
        status: a `SpeedVerdict`, "differs" for other outputs, or "reference".
        calls: number of timed calls.
        median, p95, p99: latency of a call in seconds; None with too few calls.
        per_second: samples per second.
        judged: speed relative to the reference, with its interval; None for the reference.
    """

    name: str
    status: str
    calls: int
    median: float | None
    p95: float | None
    p99: float | None
    per_second: float | None
    judged: Judged | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """All ways with one size of the batch and one number of threads.

    Attributes:
        batch: samples in a call.
        threads: threads of torch, and of onnxruntime.
        rows: the reference first.
        control: the reference against itself; None without times.
        margin: relative difference that counts as none.
    """

    batch: int
    threads: int
    rows: tuple[WayRow, ...]
    control: Judged | None
    margin: float

    @property
    def even(self) -> bool:
        """True if the reference, measured against itself, differs by less than a gain that would count."""
        return self.control is not None and (
            self.control.high <= 1 + 2 * MARGIN and self.control.low >= 1 / (1 + 2 * MARGIN)
        )

    @property
    def best(self) -> WayRow | None:
        """The fastest way with equal outputs that gains; None if there is none."""
        gains = [row for row in self.rows if row.status == SpeedVerdict.GAIN and row.name not in _NO_ADVICE]
        return max(gains, key=lambda row: row.judged.ratio if row.judged else 0.0, default=None)

    @property
    def faster_with_other_outputs(self) -> tuple[WayRow, ...]:
        """Ways that would gain more than the best one, but with other outputs."""
        least = self.best.judged.ratio if self.best is not None and self.best.judged else 1 + self.margin
        return tuple(
            row for row in self.rows if row.status == DIFFERS and row.judged is not None and row.judged.low > least
        )


@dataclass(slots=True)
class InferenceMeasured:
    """Result of the experiment.

    Attributes:
        title: name of the model, for people.
        facts: lines about the model and its inputs.
        reference: name of the way that the others are compared with.
        settings: one for each number of threads and samples.
        failed: reason by name of a way that cannot be built.
        apart: relative difference of the outputs from those of the reference by name; None for another shape or type.
        differs: text of a difference of shapes or types by name.
        once: seconds until the first outputs, by name: reading, compiling, writing.
        tolerance: largest relative difference of equal outputs.
        left_out: names that did not fit into the budget.
        stable: False if the reference differs from itself.
        notes: other facts.
    """

    title: str
    facts: tuple[str, ...] = ()
    reference: str = "eager"
    settings: tuple[Setting, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    apart: Mapping[str, float | None] = field(default_factory=dict)
    differs: Mapping[str, str] = field(default_factory=dict)
    once: Mapping[str, float] = field(default_factory=dict)
    tolerance: float = 1e-4
    left_out: tuple[str, ...] = ()
    stable: bool = True
    notes: tuple[str, ...] = ()


def read(
    document: Mapping[str, Any], title: str, facts: Sequence[str] = (), notes: Sequence[str] = ()
) -> InferenceMeasured:
    """Return the result for the times of `measure`.

    Args:
        document: the times.
        title: name of the model.
        facts: lines about the model.
        notes: other facts.
    """
    apart = {name: one["relative"] for name, one in document["apart"].items()}
    stable = document["stable"]
    other = {
        name for name, relative in apart.items() if relative is None or (stable and relative > document["tolerance"])
    }
    once: dict[str, float] = {}
    for row in document["built"]:
        once[row["way"]] = max(once.get(row["way"], 0.0), row["seconds"])
    return InferenceMeasured(
        title=title,
        facts=tuple(facts),
        reference=document["reference"],
        settings=tuple(_setting(one, document["reference"], other) for one in document["settings"]),
        failed={row["way"]: row["fault"] for row in document["built"] if row["fault"]},
        apart=apart,
        differs={name: one["fault"] for name, one in document["apart"].items() if one["fault"]},
        once=once,
        tolerance=document["tolerance"],
        left_out=tuple(document["left_out"]),
        stable=stable,
        notes=tuple(notes),
    )


def _setting(one: Mapping[str, Any], reference: str, other: set[str]) -> Setting:
    by_name = {way["way"]: way for way in one["ways"]}
    plain = by_name.get(reference, {"turns": []})["turns"]
    held = by_name.pop(CONTROL, None)
    control = None if held is None or not held["turns"] else judge([_ratios(plain, held["turns"])])
    margin = MARGIN
    if control is not None and math.isfinite(control.ratio):
        margin = max(MARGIN, 1.5 * abs(math.log(control.ratio)))
    rows = []
    for name, way in by_name.items():
        judged = None if name == reference else judge([_ratios(plain, way["turns"])], margin)
        status = "reference" if judged is None else DIFFERS if name in other else str(judged.says)
        rows.append(
            WayRow(name, status, way["calls"], way["median"], way["p95"], way["p99"], way["per_second"], judged)
        )
    return Setting(one["batch"], one["threads"], tuple(rows), control, margin)


def _ratios(plain: Sequence[float], changed: Sequence[float]) -> list[float]:
    return [first / second for first, second in zip(plain, changed, strict=False) if first > 0 and second > 0]
