"""The account of losses: those that are differentiated, by line of the backward pass, at first and at last.

The name of a loss comes from the operation that computed it, as the tape has it, whatever the style of the program.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from truestep import events as ev
from truestep.accounts._account import Account, Entry, line_of, place
from truestep.accounts.run_objects import Objects
from truestep.events import Event, Site

_Key = tuple[str, Site | None, int, str]
"""Kind of a loss function, line of its calls, classes, and reduction."""
_NAMES = {
    "NllLoss": "cross entropy",
    "BinaryCrossEntropyWithLogits": "binary cross entropy of logits",
    "BinaryCrossEntropy": "binary cross entropy",
    "MseLoss": "squared error",
    "L1Loss": "absolute error",
    "SmoothL1Loss": "smooth L1",
    "HuberLoss": "Huber",
    "KlDiv": "KL divergence",
    "CtcLoss": "CTC",
    "Add": "sum of terms",
    "Sub": "difference of terms",
    "Neg": "negative of a term",
    "Mean": "mean",
    "Sum": "sum",
    "leaf": "tensor without a graph",
}
_OVER_CLASSES = ("cross_entropy", "nll_loss")
_SHOWN = 2


@dataclass(slots=True)
class LossLine:
    """The losses of one line with a backward pass."""

    site: Site | None
    root: str
    """Name of the operation that computed the loss; a division or multiplication by a number is skipped."""
    scaled: bool
    first: float
    last: float
    reads: int = 1
    moved: bool = False
    """True if two of the values read differ by more than rounding errors."""


class Losses(Account[_Key]):
    """Follows the values that backward passes start from, and counts the calls of loss functions."""

    name = "loss"

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self.lines: dict[Site | None, LossLine] = {}

    def note(self, event: Event) -> None:
        """Enter an event."""
        match event:
            case ev.LossComputed(grad=True):
                self.tally.add((event.kind, event.site, event.classes, event.reduction))
            case ev.LossRead():
                line = self.lines.get(event.site)
                if line is None:
                    self.lines[event.site] = LossLine(event.site, event.root, event.scaled, event.value, event.value)
                else:
                    line.moved = line.moved or event.moved or event.value != line.last
                    line.last = event.value
                    line.reads += 1

    @property
    def classes(self) -> int:
        """Number of classes, if all losses over classes have the same; else 0."""
        found = {classes for kind, _, classes, reduction in self.tally if kind in _OVER_CLASSES and reduction == "mean"}
        return found.pop() if len(found) == 1 else 0

    def chance(self, line: LossLine) -> float | None:
        """Return the cross entropy of a guess among the classes; None for another loss."""
        if self.classes < 2 or line.scaled or not line.root.startswith("NllLoss"):
            return None
        return math.log(self.classes)

    def entry(self) -> Entry | None:
        """Return the losses by line."""
        functions: dict[str, dict[str, Any]] = {}
        for kind, _, classes, reduction in (keys := list(self.tally)):
            key = f"{kind} {classes} {reduction}"
            functions[key] = {"kind": kind, "classes": classes, "reduction": reduction, "calls": 0}
        for kind, site, classes, reduction in keys:
            functions[f"{kind} {classes} {reduction}"]["calls"] += self.tally[kind, site, classes, reduction]
        if not self.lines:
            return None
        lines = sorted(self.lines.values(), key=lambda line: -line.reads)
        texts = [self._text(line, alone=len(lines) == 1) for line in lines[:_SHOWN]]
        texts += [f"{len(lines) - _SHOWN} other lines"] if len(lines) > _SHOWN else []
        facts = {"lines": [self._facts(line) for line in lines], "functions": list(functions.values())}
        return Entry("; ".join(texts), facts)

    def _text(self, line: LossLine, *, alone: bool) -> str:
        guess = self.chance(line)
        name = f"{self._named(line)}" + ("" if alone else f" ({place(line.site)})")
        if line.reads == 1:
            return f"{name}: {line.first:.3g}"
        chance = "" if guess is None else f" (chance {guess:.3g})"
        return f"{name}: {line.first:.3g} at first{chance}, {line.last:.3g} at last"

    def _named(self, line: LossLine) -> str:
        stem = line.root.partition("Backward")[0]
        known = max((key for key in _NAMES if stem.startswith(key)), key=len, default="")
        name = _NAMES.get(known, "loss")
        if known == "NllLoss" and self.classes:
            name = f"{name} of {self.classes:,} classes"
        return f"{name}, scaled" if line.scaled else name

    def _facts(self, line: LossLine) -> dict[str, Any]:
        return {
            "site": line_of(line.site),
            "kind": self._named(line),
            "operation": line.root,
            "first": line.first,
            "last": line.last,
            "chance": self.chance(line),
        }
