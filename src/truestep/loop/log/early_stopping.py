"""Early stopping: the number of logged values without an improvement, which is saved in checkpoints."""

from __future__ import annotations

import math
from typing import Any

from truestep.errors import BadSettings, MetricMissing


class EarlyStopping:
    """Counts logged values without an improvement.

    A value is counted when it is logged, not in `stalled()`, which can be called any number of times.

    Example:
        >>> count = EarlyStopping()
        >>> for loss in (1.0, 0.5, 0.6, 0.55):
        ...     count.logged({"val_loss": loss})
        ...     print(loss, count.stalled("val_loss", patience=2))
        1.0 False
        0.5 False
        0.6 False
        0.55 True
    """

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, Any]] = {}

    def follow(self, name: str, *, mode: str, min_delta: float, last: float | None) -> str:
        """Start a count, if it does not exist yet; return its key.

        Args:
            name: name of the value.
            mode: "min" if smaller is better, "max" if larger is.
            min_delta: smallest improvement over the best value that counts.
            last: last value logged under that name, which is the first one counted; None without one.
        """
        key = f"{mode} {min_delta!r} {name}"
        if key not in self._counts:
            self._counts[key] = {
                "name": name,
                "mode": mode,
                "min_delta": min_delta,
                "best": None,
                "since": 0,
                "asked_in": [],
            }
            if last is not None:
                _count(self._counts[key], last)
        return key

    def stalled(
        self,
        name: str,
        *,
        patience: int,
        min_delta: float = 0.0,
        mode: str = "min",
        last: float | None = None,
        epoch: int = 0,
    ) -> bool:
        """Return True if the last `patience` values did not improve. See `Run.stalled`."""
        if not isinstance(patience, int) or isinstance(patience, bool) or patience < 1:
            raise BadSettings(f"patience must be a positive integer, got {patience!r}", remedy="pass patience=5")
        if mode not in ("min", "max"):
            raise BadSettings(f'mode must be "min" or "max", got {mode!r}', remedy='pass mode="min" for a loss')
        if not 0 <= min_delta < math.inf:
            raise BadSettings(
                f"min_delta must be a finite number of at least 0, got {min_delta!r}", remedy="leave min_delta out"
            )
        count = self._counts[self.follow(name, mode=mode, min_delta=float(min_delta), last=last)]
        if count["best"] is None and not count["since"]:
            if epoch not in count["asked_in"]:
                count["asked_in"].append(epoch)
            if len(count["asked_in"]) > patience:
                raise MetricMissing(
                    f'run.stalled() was called in {len(count["asked_in"])} epochs, but "{name}" was never logged',
                    expected="expected a value from run.log() under that name",
                    remedy=f'write run.log({{"{name}": value}}) before run.stalled("{name}")',
                )
        return bool(count["since"] >= patience)

    def follows(self, name: str) -> bool:
        """Return True if there is a count for a value."""
        return any(count["name"] == name for count in self._counts.values())

    def logged(self, values: dict[str, Any]) -> None:
        """Count the values of one line."""
        for count in self._counts.values():
            value = values.get(count["name"])
            if value is not None and not isinstance(value, str):
                _count(count, float(value))

    def state_dict(self) -> dict[str, Any]:
        """Return the counts."""
        return {key: {**count, "asked_in": list(count["asked_in"])} for key, count in self._counts.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the counts of another run."""
        self._counts = {key: {**count, "asked_in": list(count["asked_in"])} for key, count in state.items()}


def _count(count: dict[str, Any], value: float) -> None:
    best, delta = count["best"], count["min_delta"]
    if not math.isnan(value) and (
        best is None or (value < best - delta if count["mode"] == "min" else value > best + delta)
    ):
        count["best"], count["since"] = value, 0
    else:
        count["since"] += 1
