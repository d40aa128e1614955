"""The changes that an experiment applies to a script, at the seams of torch: one per file, each undone exactly.

Every class with a name in a module of the first three folders is found by listing them.

harness: changes that experiments need for themselves, such as a seed or a kill
remedies: remedies of findings
speedups: speed-ups that `truestep tune` tries
parts: base classes and shared code of changes
"""

from __future__ import annotations

from truestep.experiments.changes.parts.aimed import Aimed
from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.discovery import changes_in
from truestep.experiments.changes.speedups import SPEEDUPS

_REMEDIES = changes_in(f"{__name__}.remedies")

CHANGES: dict[str, type[Change]] = {
    change.name: change for change in (*changes_in(f"{__name__}.harness"), *_REMEDIES, *SPEEDUPS.values())
}
"""All changes by name."""

REMEDIES: dict[str, str] = {rule: change.name for change in _REMEDIES for rule in change.remedies}
"""Name of the remedy by rule id, for the rules with a remedy that can be applied from outside."""

__all__ = ["CHANGES", "REMEDIES", "Aimed", "Change"]
