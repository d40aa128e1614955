"""A line of a run's log."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class LogLine:
    """The values logged at one time.

    Attributes:
        step: number of steps taken.
        epoch: the current epoch.
        values: numbers and strings by name; tensors until they are read.

    Example:
        >>> LogLine(3, 0, {"loss": 0.5, "norm": math.inf}).text()
        '{"step": 3, "epoch": 0, "loss": 0.5, "norm": "inf"}'
    """

    step: int
    epoch: int
    values: dict[str, Any]

    def text(self) -> str:
        """Return the line as JSON, with NaN and infinities as strings."""
        values = {name: _plain(value) for name, value in self.values.items()}
        return json.dumps({"step": self.step, "epoch": self.epoch, **values})

    def numbers(self) -> dict[str, float]:
        """Return the values that are numbers."""
        return {name: float(value) for name, value in self.values.items() if not isinstance(value, str)}

    def texts(self) -> dict[str, str]:
        """Return the values that are texts."""
        return {name: value for name, value in self.values.items() if isinstance(value, str)}


def read(path: Path) -> Iterator[LogLine]:
    """Yield the lines of a file, without incomplete ones.

    Args:
        path: `metrics.jsonl` or another file of such lines; a missing file yields nothing.
    """
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for text in file:
            try:
                values = json.loads(text)
                step, epoch = values.pop("step"), values.pop("epoch")
            except (ValueError, KeyError, AttributeError):
                continue
            yield LogLine(step, epoch, {name: _number(value) for name, value in values.items()})


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any) -> Any:
    return float(value) if value in ("nan", "inf", "-inf") else value
