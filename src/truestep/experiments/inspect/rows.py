"""The rows of a table of layers: in the order of calls, indented, with repeated blocks as one row."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from truestep.experiments.inspect.inspect import LayerFacts, ModelFacts, ParameterFacts


@dataclass(slots=True)
class Row:
    """One row: a layer, or repeated layers of the same form.

    Attributes:
        name: name in the enclosing row: "head", "blocks.0-11".
        depth: number of rows around it.
        layers: the layer, or all layers that the row stands for.
        parameters: own parameters of each of these layers; with those of the layers inside if they are not shown.
        tied: first names of parameters that are used here under another name.
        children: rows inside.
    """

    name: str
    depth: int
    layers: list[LayerFacts]
    parameters: list[list[ParameterFacts]]
    tied: list[str] = field(default_factory=list)
    children: list[Row] = field(default_factory=list)

    @property
    def values(self) -> int:
        """Number of values of the parameters."""
        return sum(one.values for held in self.parameters for one in held)

    @property
    def state(self) -> str:
        """Return "frozen", "none" without a gradient, "some" or "all" have one; "" without parameters."""
        held = [one for part in self.parameters for one in part]
        trained = [one for one in held if one.trainable]
        if not trained:
            return "frozen" if held else ""
        reached = sum(one.reached for one in trained)
        return "all" if reached == len(trained) else "some" if reached else "none"

    @property
    def gradients(self) -> list[float]:
        """Norm of the gradients of each layer with any."""
        return [norm for held in self.parameters if (norm := _norm([one.gradient_norm for one in held])) is not None]

    @property
    def ratios(self) -> list[float]:
        """Norm of the gradients divided by that of the weights which have one, for each layer."""
        found = []
        for held in self.parameters:
            with_one = [one for one in held if one.gradient_norm is not None]
            gradient, weights = _norm([one.gradient_norm for one in with_one]), _norm([one.norm for one in with_one])
            if gradient is not None and weights:
                found.append(gradient / weights)
        return found


def rows_of(model: ModelFacts, depth: int | None = None) -> list[Row]:
    """Return the rows of a model, each before those inside it.

    Args:
        model: the model.
        depth: most rows around a row; deeper layers count for the row around them. None shows all.
    """
    roots: list[Row] = []
    around: list[Row] = []
    own = _own(model)
    for layer in model.layers:
        del around[layer.depth :]
        outer = around[-1].layers[0].name if around else ""
        name = layer.name.removeprefix(f"{outer}.") if outer else layer.name
        held, tied = own.get(layer.name, ([], []))
        row = Row(name or model.name, len(around), [layer], [held], tied)
        (around[-1].children if around else roots).append(row)
        around.append(row)
    if depth is not None:
        for row in roots:
            _limit(row, depth)
    return [shown for row in _folded(roots) for shown in _flat(row)]


def _flat(row: Row) -> Iterator[Row]:
    yield row
    for child in row.children:
        yield from _flat(child)


def _own(model: ModelFacts) -> dict[str, tuple[list[ParameterFacts], list[str]]]:
    """Return the parameters of each layer, and the first names of those that it uses under another name.

    A parameter belongs to the innermost called layer around it, unless it is in a module that was not called.
    """
    layers = {layer.name for layer in model.layers}
    places = layers | set(model.not_called)
    found: dict[str, tuple[list[ParameterFacts], list[str]]] = {}
    for parameter in model.parameters:
        place = _around(parameter.name, places)
        if place in layers:
            found.setdefault(place, ([], []))[0].append(parameter)
    for alias, first in model.tied.items():
        place = alias.rpartition(".")[0]
        if place in layers:
            found.setdefault(place, ([], []))[1].append(first)
    return found


def _around(name: str, places: set[str]) -> str | None:
    while name:
        name = name.rpartition(".")[0]
        if name in places:
            return name
    return None


def _limit(row: Row, depth: int) -> None:
    """Take away the rows that are too deep; their parameters count for the row around them."""
    for child in row.children:
        _limit(child, depth)
    if row.depth >= depth:
        for child in row.children:
            row.parameters[0] = [*row.parameters[0], *child.parameters[0]]
        row.children = []


# --- repeated blocks ---


def _folded(rows: Sequence[Row]) -> list[Row]:
    """Return sibling rows with consecutive numbers and the same form as one."""
    found: list[Row] = []
    forms: list[tuple[object, ...]] = []
    for row in rows:
        row.children = _folded(row.children)
        form = _form(row)
        if found and form == forms[-1] and _follows(found[-1].layers[-1].name, row.layers[0].name):
            _join(found[-1], row)
        else:
            found.append(row)
            forms.append(form)
    for row in found:
        if len(row.layers) > 1:
            last = re.search(r"\d+$", row.layers[-1].name)
            row.name = f"{row.name}-{last[0] if last else ''}"
    return found


def _form(row: Row) -> tuple[object, ...]:
    """Return the properties that rows must share to be one: class, shapes, states, and those of the rows inside."""
    layer = row.layers[0]
    own = tuple((one.shape, one.trainable, one.reached, one.dtype) for one in row.parameters[0])
    inside = tuple((child.name, _form(child)) for child in row.children)
    facts = (layer.kind, layer.calls, layer.input, layer.output, layer.dtype, layer.trained, layer.finite)
    return (*facts, own, bool(row.tied), len(row.layers), inside)


def _follows(before: str, after: str) -> bool:
    one, other = re.fullmatch(r"(.*?)(\d+)", before), re.fullmatch(r"(.*?)(\d+)", after)
    return one is not None and other is not None and one[1] == other[1] and int(other[2]) == int(one[2]) + 1


def _join(into: Row, row: Row) -> None:
    into.layers += row.layers
    into.parameters += row.parameters
    into.tied += row.tied
    for mine, other in zip(into.children, row.children, strict=True):
        _join(mine, other)


def _norm(parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return math.sqrt(sum(part * part for part in known)) if known else None
