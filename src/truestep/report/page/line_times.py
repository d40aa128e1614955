"""Time by line of the user's files, as `truestep profile` measured it in another run of the script."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truestep.errors import UsageError
from truestep.report.page.lines import Place

_LEAST = 0.001
"""Share of a step below which a line has no time on the page."""


@dataclass(frozen=True, slots=True)
class LineTime:
    """The time of a line in the mean step, with its calls, without other lines of the user's code."""

    ms: float
    share: float
    phases: tuple[str, ...]
    """Phases of the step, the longest first."""

    @property
    def text(self) -> str:
        """The time for people."""
        size = f"{self.ms:,.0f}" if self.ms >= 100 else f"{self.ms:.3g}"
        return f"{size} ms a step, {100 * self.share:.2g} %" + (f" ({', '.join(self.phases)})" if self.phases else "")

    @property
    def percent(self) -> float:
        """The share in per cent, for the width of a bar."""
        return round(100 * min(1.0, self.share), 1)


Times = Mapping[Place, LineTime]


def line_times(rows: Iterable[Mapping[str, Any]]) -> dict[Place, LineTime]:
    """Return the times by path and line.

    Args:
        rows: lines of a profile, one for each phase, with "path", "line", "phase", "ms" and "share".
    """
    parts: dict[Place, list[tuple[float, float, str]]] = {}
    for row in rows:
        part = float(row["ms"]), float(row["share"]), str(row["phase"])
        parts.setdefault((os.path.realpath(row["path"]), int(row["line"])), []).append(part)
    times = {}
    for place, found in parts.items():
        found.sort(reverse=True)
        ms, share = sum(part[0] for part in found), sum(part[1] for part in found)
        if share >= _LEAST:
            times[place] = LineTime(ms, share, tuple(phase for _, one, phase in found if one >= _LEAST))
    return times


def read_times(file: Path) -> dict[Place, LineTime]:
    """Return the times by line from a file that `truestep profile --format json` wrote.

    Raises:
        UsageError: the file cannot be read, or is not a profile.
    """
    try:
        return line_times(json.loads(file.read_text(encoding="utf-8"))["lines"])
    except OSError as error:
        reason = error.strerror or str(error)
    except (ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
    raise UsageError(
        f"{file} is not a profile",
        expected=f"expected JSON of `truestep profile`, got: {reason}",
        remedy="write one with `truestep profile SCRIPT --format json > profile.json`",
    )
