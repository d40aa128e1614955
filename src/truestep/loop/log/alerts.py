"""Alerts of a run: raised from values that it reads anyway, printed once, and written to `alerts.jsonl`.

By default, the loss passed to `run.step()` is checked for NaN and, in a loop over a loader with one optimizer, for
spikes; the gradient norm, if gradients are clipped, for both; a logged validation loss for rising five times in a row.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from truestep.errors import BadSettings
from truestep.loop.log.alert_rules import AlertRule, Bound, NormSpike, NotFiniteValue, Rising, Spike
from truestep.loop.log.line_file import LineFile

VALIDATION_LOSS = re.compile(r"(?:^|[_/.\- ])(?:val|valid|validation|eval)[_/.\- ]loss$")
"""Names of values that are checked for rising by default: val_loss, val/loss, model/valid_loss, eval_loss."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert.

    Attributes:
        step: number of steps when the value was logged; for the loss passed to `run.step()`, the number of that step.
        epoch: the current epoch.
        name: name of the value.
        kind: "not-finite", "spike", "norm-spike", "rising" or "bound"; "not-written" if the log cannot be written.
        message: the message, in one line.
        value: the value.
    """

    step: int
    epoch: int
    name: str
    kind: str
    message: str
    value: float

    def __str__(self) -> str:
        return f"alert at step {self.step}: {self.message}"

    def line(self) -> str:
        """Return the alert as a line of JSON."""
        value = self.value if math.isfinite(self.value) else str(self.value)
        return json.dumps({**asdict(self), "value": value})


class Alerts:
    """Checks series of values, by name.

    Args:
        path: file for alerts; None to write none.
        show: called once with the text of each alert.
        defaults: also check values without a call of `set_conditions`, by the default rules.

    Example:
        >>> alerts = Alerts(None, show=print)
        >>> alerts.set_conditions("loss", above=10.0)
        >>> alerts.logged(3, 0, {"loss": 12.0})
        truestep: alert at step 3: loss is 12, above 10
    """

    def __init__(self, path: Path | None, *, show: Callable[[str], None], defaults: bool = True) -> None:
        self._file = None if path is None else LineFile(path, failed=self._not_written)
        self.path = path
        self.defaults = defaults
        self.found: list[Alert] = []
        self.callbacks: list[Callable[[Alert], object]] = []
        self._show = show
        self._rules: dict[str, dict[str, AlertRule]] = {}
        self._loaded: dict[str, dict[str, Any]] = {}

    def set_conditions(self, name: str, **conditions: Any) -> None:
        """Check a logged value for NaN and infinity, and by the conditions that are not None. See `Run.alert`."""
        asked = {kind: _ASKED[kind](value) for kind, value in conditions.items() if value is not None}
        self._rules.pop(name, None)
        self._watch(name, {"not-finite": NotFiniteValue(), **asked})

    # --- values ---

    def check_own(self, step: int, epoch: int, name: str, value: float, kinds: tuple[str, ...]) -> None:
        """Check a value of the run itself: a loss passed to `run.step()`, a gradient norm.

        Args:
            step: number of the step.
            epoch: the current epoch.
            name: name of the value in messages.
            value: the value.
            kinds: the rules of the series, of "not-finite", "spike" and "norm-spike"; and "jumped" if the learning rate
                has just jumped up, as in a warm restart.
        """
        key = f"run.step: {name}"
        rules = self._rules.get(key)
        if rules is None:
            rules = self._watch(key, {kind: _OWN[kind]() for kind in kinds if kind != "jumped"})
        if "jumped" in kinds:
            for rule in rules.values():
                rule.pause()
        self._check(rules, step, epoch, name, value)

    def logged(self, step: int, epoch: int, values: dict[str, Any]) -> None:
        """Check the values of one line of the log."""
        for name, value in values.items():
            rules = self._rules.get(name)
            if rules is None:
                if not self.defaults or not VALIDATION_LOSS.search(name):
                    continue
                rules = self._watch(name, {"not-finite": NotFiniteValue(), "rising": Rising(5)})
            if not isinstance(value, str):
                self._check(rules, step, epoch, name, float(value))

    def _check(self, rules: dict[str, AlertRule], step: int, epoch: int, name: str, value: float) -> None:
        for rule in rules.values():
            happened = rule.check(value)
            if happened is not None:
                self._add(Alert(step, epoch, name, rule.kind, f"{name} {happened}", value))

    def _add(self, alert: Alert) -> None:
        self.found.append(alert)
        if self._file is not None:
            self._file.add([alert.line()])
        self._show(f"truestep: {alert}")
        for callback in self.callbacks:
            callback(alert)

    def happened(self, step: int, epoch: int, name: str, kind: str, message: str) -> None:
        """Raise an alert about the run itself, not about a value.

        Args:
            step: number of steps.
            epoch: the current epoch.
            name: name of the affected object, such as a file.
            kind: kind of the alert.
            message: the message, in one line.
        """
        self._add(Alert(step, epoch, name, kind, message, math.nan))

    def _not_written(self, error: OSError) -> None:
        assert self.path is not None
        self._show(f"truestep: {self.path.name} cannot be written ({error.strerror}); the training goes on")

    def _watch(self, key: str, rules: dict[str, AlertRule]) -> dict[str, AlertRule]:
        known = self._loaded.pop(key, {})
        for what, rule in rules.items():
            if what in known:
                rule.load_state_dict(known[what])
        self._rules[key] = rules
        return rules

    # --- checkpoints ---

    def state_dict(self) -> dict[str, Any]:
        """Flush the file to the disk; return the state, from which a resumed run raises the same alerts."""
        size = 0 if self._file is None else self._file.secure()
        waiting = [] if self._file is None else list(self._file.waiting)
        rules = {key: {what: rule.state_dict() for what, rule in own.items()} for key, own in self._rules.items()}
        found = [asdict(alert) for alert in self.found]
        return {"bytes": size, "waiting": waiting, "found": found, "rules": {**self._loaded, **rules}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of another run; alerts after its checkpoint are dropped."""
        self.found[:] = [Alert(**alert) for alert in state["found"]]
        self._loaded = {key: dict(known) for key, known in state["rules"].items()}
        for key, rules in self._rules.items():
            self._watch(key, rules)
        if self._file is not None:
            self._file.waiting = list(state.get("waiting", ()))
            if self._file.size > state["bytes"]:
                os.truncate(self._file.path, state["bytes"])


def _times(kind: str, times: Any) -> int:
    if not isinstance(times, int) or isinstance(times, bool) or times < 1:
        raise BadSettings(f"{kind} must be a positive integer (times in a row), got {times!r}", remedy=f"pass {kind}=5")
    return times


_ASKED: dict[str, Callable[[Any], AlertRule]] = {
    "rising": lambda times: Rising(_times("rising", times)),
    "falling": lambda times: Rising(_times("falling", times), falling=True),
    "spike": lambda _: Spike(),
    "above": lambda limit: Bound(float(limit)),
    "below": lambda limit: Bound(float(limit), below=True),
}
"""Rules by the argument of `Run.alert` that adds them."""
_OWN: dict[str, Callable[[], AlertRule]] = {
    "not-finite": NotFiniteValue,
    "spike": lambda: Spike(fallen=True),
    "norm-spike": NormSpike,
}
