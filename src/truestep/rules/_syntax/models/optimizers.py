"""Settings of optimizers out of range, also from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from truestep.syntax import Call, Program, Suspicion

_SMALL = 0.005
"""Largest momentum, or share of the old squares, that is a weight decay in another place."""
_LONGER = 4
"""Steps that the first beta averages over, relative to those of the second, from which on this slows down a training.
Betas such as 0.95 and 0.9, or 0.98 and 0.95, train as well as usual ones."""
_WITH_BETAS = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "SparseAdam"})
_PLACES = {
    "SGD": {"momentum": 2, "weight_decay": 4},
    "RMSprop": {"alpha": 2, "weight_decay": 4, "momentum": 5},
    **{kind: {"betas": 2} for kind in _WITH_BETAS},
}
"""Places of settings among the arguments of torch's optimizers, behind the parameters and the learning rate."""

_CHANGED = re.compile(
    r"""\[\s*["'](?:momentum|betas|alpha)["']\s*\]\s*[-+*/]?=[^=]|\.update\([^()]*\b(?:momentum|betas|alpha)\b"""
    r"""|\b(?:OneCycle|Cyclic)LR\("""
)
"""Settings that are assigned later, as by a schedule."""


class OutOfRange(NamedTuple):
    """The texts of a setting out of range; ``message`` names the optimizer as ``{kind}``."""

    message: str
    label: str
    help: str
    usual: str


def out_of_range(settings: dict[str, float], weight_decay: float) -> OutOfRange | None:
    """Return the failure of the settings of an optimizer; None if each is in its range."""
    first, second = settings.get("beta1", 0.0), settings.get("beta2", 1.0)
    if first and (not second or 1 - second > _LONGER * (1 - first)):
        return OutOfRange(
            f"the betas of {{kind}} are exchanged: {first:g} and {second:g}",
            "averages gradients over more steps than their squares",
            f"exchange them: `betas=({second:g}, {first:g})`",
            "0.9 and 0.999",
        )
    momentum, alpha = settings.get("momentum", 0.0), settings.get("alpha", 0.5)
    if momentum >= 1 or (0 < momentum <= _SMALL and not weight_decay):
        shifted = momentum < 1
        return OutOfRange(
            f"the momentum of {{kind}} is {momentum:g}",
            "a weight decay as the momentum" if shifted else "earlier gradients never fade",
            f"pass settings by name: `momentum=0.9, weight_decay={momentum:g}`" if shifted else "use a momentum of 0.9",
            "0.5 to 0.99",
        )
    if "alpha" in settings and (alpha >= 1 or (0 < alpha <= _SMALL and not weight_decay)):
        return OutOfRange(
            f"`alpha` of {{kind}} is {alpha:g}",
            "keeps the first squares for ever" if alpha >= 1 else "a weight decay as `alpha`",
            "pass settings by name, and leave `alpha` out",
            "0.9 to 0.99",
        )
    return None


def is_usual(settings: dict[str, float], other: dict[str, float]) -> bool:
    """Return True if settings are in their range, and one that is not in the range of others has a usual value."""
    if out_of_range(settings, 0.0) is not None:
        return False
    return any(value > _SMALL and name in other and value != other[name] for name, value in settings.items())


def optimizer_setting_out_of_range(program: Program) -> Iterator[Suspicion]:
    """Yield constructions of optimizers with a setting out of range that the source writes out."""
    if _CHANGED.search(program.text):
        return
    for call in program.optimizers:
        places = _PLACES.get(call.method, {})
        if not places or call.unpacks:
            continue
        settings: dict[str, float] = {}
        for name, place in places.items():
            value = call.argument(place, name)
            if name == "betas" and isinstance(value, ast.Tuple | ast.List):
                pairs = zip(("beta1", "beta2"), value.elts, strict=False)
                settings |= {
                    beta: number for beta, each in pairs if (number := _number(each, call, program)) is not None
                }
            elif value is not None and (number := _number(value, call, program)) is not None:
                settings[name] = number
            elif value is not None and name == "weight_decay":
                settings[name] = 1.0  # unknown, and given
        if not {"beta1", "beta2"} <= settings.keys():
            settings.pop("beta1", None)
        found = out_of_range(settings, settings.get("weight_decay", 0.0))
        if found is not None:
            yield Suspicion(call.node, found.message.format(kind=call.method), found.label, found.help)


def _number(node: ast.expr, call: Call, program: Program) -> float | None:
    value = program.values.constant(node, call.context, call.order)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
