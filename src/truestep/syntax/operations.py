"""Operations of a training, and the way to the function with one of them from the outermost function."""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass, replace

from truestep.syntax.places import NO_GRAD, Call, Context, Guard, Loop


class Act(enum.Enum):
    """An operation that matters for the order of a training."""

    CLEAR = "clears gradients"
    BACKWARD = "computes gradients"
    ADD = "adds to gradients by hand"
    STEP = "updates parameters"
    CLIP = "clips gradients"
    UNSCALE = "unscales gradients"
    UPDATE = "updates the scale"
    SCHEDULE = "sets the learning rate"
    TRAIN = "sets train mode"
    EVAL = "sets eval mode"
    MODE = "sets train or eval mode, by a value that is not known"
    FORWARD = "calls a model"
    UNKNOWN = "calls code that is not in this file with objects of the training"


@dataclass(slots=True, eq=False)
class Operation:
    """One operation, as a function reaches it."""

    act: Act
    key: str
    """Text of the object, such as "self.optimizer", in the names of the outermost function; "" if it has no name."""
    node: ast.expr | ast.stmt
    context: Context
    order: int
    loops: tuple[Loop, ...]
    """Loops around it, outermost first, also in the functions on the way."""
    guards: tuple[Guard, ...]
    withs: tuple[Call, ...]
    call: Call | None = None
    scaled: bool = False
    """Whether a scaler scales the loss, or takes the step."""
    via: tuple[Call, ...] = ()
    """Calls of functions of this file on the way to it."""
    keys: frozenset[str] = frozenset()
    """For unknown code: the objects that it gets."""
    wrapped: bool = False
    """Whether a decorator of this file switches the gradients off around it."""
    mode: str = ""
    """For a mode by a value that is not known: the name of the value."""

    @property
    def without_gradients(self) -> bool:
        """Return True if gradients are off, also by the functions on the way to it."""
        if self.wrapped or self.context.without_gradients or any(call.name in NO_GRAD for call in self.withs):
            return True
        return any(call.context.without_gradients for call in self.via)


@dataclass(frozen=True, slots=True)
class Way:
    """The way to a function from the outermost one, with the statements around its operations and its names there."""

    names: dict[str, str]
    loops: tuple[Loop, ...] = ()
    guards: tuple[Guard, ...] = ()
    withs: tuple[Call, ...] = ()
    via: tuple[Call, ...] = ()
    depth: int = 0
    off: bool = False
    """Whether a decorator of this file switches the gradients off."""

    def at(self, place: Context) -> Way:
        """Return the way to a place in the function."""
        loops = (*self.loops, *place.loop.chain()) if place.loop is not None else self.loops
        return replace(self, loops=loops, guards=(*self.guards, *place.guards), withs=(*self.withs, *place.withs))

    def moved(self, one: Operation) -> Operation:
        """Return an operation of the function as the outermost one reaches it; its mode may be known there."""
        act = _MODES.get(self.names.get(one.mode, ""), one.act) if one.act is Act.MODE else one.act
        return Operation(
            act, renamed(one.key, self.names), one.node, one.context, one.order, self.loops, self.guards, self.withs,
            one.call, one.scaled, self.via, frozenset(renamed(key, self.names) for key in one.keys), self.off,
        )  # fmt: skip


_MODES = {"True": Act.TRAIN, "False": Act.EVAL}


def renamed(key: str, names: dict[str, str]) -> str:
    """Return the text of an object, and of the place in it, in the names of the outermost function."""
    key, bracket, place = key.partition("[")
    head, dot, rest = key.partition(".")
    if head in names:
        key = f"{names[head]}{dot}{rest}"
    inside = place.removesuffix("]")
    return f"{key}{bracket}{names.get(inside, inside)}]" if bracket else key
