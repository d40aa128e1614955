"""Functions that may be models: their calls in the first steps of a training."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from truestep.probes.context.values import Node, key_of
from truestep.seams.refs import Ref

_MOST_NODES = 10_000


class Candidate:
    """The calls of a function in one step.

    Attributes:
        own: the function.
        calls: the last operation of each result, with True for a call that is one of a model, and the functions that
            were models inside of it.
        weights: its arguments with trained tensors.
        leaves: the trained tensors that it can use, by their places.
        ok: True if all calls that the loss went through are those of a model.
        inside: True if another model made such a call.
    """

    __slots__ = ("calls", "inside", "leaves", "ok", "own", "weights")

    def __init__(self, own: FunctionType) -> None:
        self.own = own
        self.calls: list[tuple[Node | None, bool, list[int]]] = []
        self.weights: frozenset[str] = frozenset()
        self.leaves: dict[str, Ref] = {}
        self.ok = self.inside = False


def operations(root: Any) -> set[Node]:
    """Return the operations that a loss was computed by."""
    queue, found, seen = [root], set[Node](), {root}
    while queue and len(found) < _MOST_NODES:
        node = queue.pop()
        if node is None:
            continue
        found.add(key_of(node))
        fresh = {following for following, _ in node.next_functions if following is not None} - seen
        seen |= fresh
        queue += fresh
    return found


def arguments_of(own: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by their names; without the object that a method belongs to."""
    code = own.__code__
    names = code.co_varnames[: code.co_argcount]
    given = dict(zip(names, args, strict=False))
    more = args[len(names) :]
    return given | {f"*{place}": value for place, value in enumerate(more)} | kwargs
