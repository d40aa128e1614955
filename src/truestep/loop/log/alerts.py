"""What went wrong in a run while it ran: found in the values that it reads anyway, printed once, kept in
`alerts.jsonl`.

Without being asked, the loss given to `run.step()` is watched for NaN and, in a loop over a loader with one optimizer,
for spikes; the norm of the gradients, where they are clipped, for both; a logged validation loss for rising five times
in a row.
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
from truestep.loop.log.alert_rules import AlertRule, Bound, NormSpike, NotFinite, Rising, Spike
from truestep.loop.log.line_file import LineFile

VALIDATION_LOSS = re.compile(r"(?:^|[_/.\- ])(?:val|valid|validation|eval)[_/.\- ]loss$")
"""Names of values that are watched for rising without being asked: val_loss, val/loss, model/valid_loss, eval_loss."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing that happened.

    Attributes:
        step: steps taken when the value was logged; for the loss given to `run.step()`, the step that it was for.
        epoch: the epoch under way.
        name: of the value.
        kind: "not-finite", "spike", "norm-spike", "rising" or "bound"; "not-written" where the log cannot be written.
        message: what happened, in one line.
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
        """Return it as JSON can hold it."""
        value = self.value if math.isfinite(self.value) else str(self.value)
        return json.dumps({**asdict(self), "value": value})


class Alerts:
    """Watches series of values by name.

    Args:
        path: where alerts are written; None for nowhere.
        show: called with the text of each alert, once.
        defaults: whether to watch what nobody asked for.

    Example:
        >>> alerts = Alerts(None, show=print)
        >>> alerts.ask("loss", above=10.0)
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

    def ask(
        self,
        name: str,
        *,
        rising: int | None = None,
        falling: int | None = None,
        spike: bool = False,
        above: float | None = None,
        below: float | None = None,
    ) -> None:
        """Watch a logged value for NaN and infinity, and for what else is asked for. See `Run.alert`."""
        rules: dict[str, AlertRule] = {"not-finite": NotFinite()}
        for what, times in (("rising", rising), ("falling", falling)):
            if times is None:
                continue
            if not isinstance(times, int) or isinstance(times, bool) or times < 1:
                raise BadSettings(
                    f"{what} is {times!r}", expected="how many times in a row, 1 or more", remedy=f"pass {what}=5"
                )
            rules[what] = Rising(times, falling=what == "falling")
        if spike:
            rules["spike"] = Spike()
        if above is not None:
            rules["above"] = Bound(float(above))
        if below is not None:
            rules["below"] = Bound(float(below), below=True)
        self._rules.pop(name, None)
        self._watch(name, rules)

    # --- what is looked at ---

    def given(self, step: int, epoch: int, name: str, value: float, kinds: tuple[str, ...]) -> None:
        """Look at a value that the run itself has: a loss given to `run.step()`, a norm.

        Args:
            step: the step that it is for.
            epoch: the epoch under way.
            name: as messages call it.
            value: the value.
            kinds: the rules of the series, of "not-finite", "spike" and "norm-spike"; and "jumped" where the learning
                rate has just been raised at once, as by a warm restart.
        """
        key = f"run.step: {name}"
        rules = self._rules.get(key)
        if rules is None:
            rules = self._watch(key, {kind: _OWN[kind]() for kind in kinds if kind != "jumped"})
        if "jumped" in kinds:
            for rule in rules.values():
                rule.pause()
        self._look(rules, step, epoch, name, value)

    def logged(self, step: int, epoch: int, values: dict[str, Any]) -> None:
        """Look at the values of one line."""
        for name, value in values.items():
            rules = self._rules.get(name)
            if rules is None:
                if not self.defaults or not VALIDATION_LOSS.search(name):
                    continue
                rules = self._watch(name, {"not-finite": NotFinite(), "rising": Rising(5)})
            if not isinstance(value, str):
                self._look(rules, step, epoch, name, float(value))

    def _look(self, rules: dict[str, AlertRule], step: int, epoch: int, name: str, value: float) -> None:
        for rule in rules.values():
            happened = rule.look(value)
            if happened is not None:
                self._tell(Alert(step, epoch, name, rule.kind, f"{name} {happened}", value))

    def _tell(self, alert: Alert) -> None:
        self.found.append(alert)
        if self._file is not None:
            self._file.add([alert.line()])
        self._show(f"truestep: {alert}")
        for callback in self.callbacks:
            callback(alert)

    def happened(self, step: int, epoch: int, name: str, kind: str, message: str) -> None:
        """Tell what went wrong with the run itself, which no value shows.

        Args:
            step: steps taken.
            epoch: the epoch under way.
            name: of what it happened to.
            kind: of alert.
            message: what happened, in one line.
        """
        self._tell(Alert(step, epoch, name, kind, message, math.nan))

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
        """Write everything to the disk itself; return what a resumed run needs to go on as this one would."""
        size = 0 if self._file is None else self._file.secure()
        waiting = [] if self._file is None else list(self._file.waiting)
        rules = {key: {what: rule.state_dict() for what, rule in own.items()} for key, own in self._rules.items()}
        found = [asdict(alert) for alert in self.found]
        return {"bytes": size, "waiting": waiting, "found": found, "rules": {**self._loaded, **rules}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up where another run was; what it told after its checkpoint is dropped."""
        self.found[:] = [Alert(**alert) for alert in state["found"]]
        self._loaded = {key: dict(known) for key, known in state["rules"].items()}
        for key, rules in self._rules.items():
            known = self._loaded.pop(key, {})
            for what, rule in rules.items():
                if what in known:
                    rule.load_state_dict(known[what])
        if self._file is not None:
            self._file.waiting = list(state.get("waiting", ()))
            if self._file.size > state["bytes"]:
                os.truncate(self._file.path, state["bytes"])


_OWN: dict[str, Callable[[], AlertRule]] = {
    "not-finite": NotFinite,
    "spike": lambda: Spike(fallen=True),
    "norm-spike": NormSpike,
}
