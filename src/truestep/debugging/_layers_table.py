"""The table of an inspection: findings first, then layers and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from truestep.debugging._tables import WIDTH, counted, fact, hidden, names, number, share, shortened, table

if TYPE_CHECKING:
    from truestep.debugging.inspection import Inspection, Layer, NotFinite, ParameterSeen
    from truestep.debugging.statistics import Statistics


def of_inspection(seen: Inspection, width: int = WIDTH) -> RenderableType:
    """Return the text of an inspection, in this many columns."""
    if not seen.looked:
        return Text("inspect: skipped, since `when` was false")
    values = sum(_size(parameter) for parameter in seen.parameters)
    trainable = [parameter for parameter in seen.parameters if parameter.trainable]
    layers, parameters = counted(len(seen.layers), "layer"), counted(len(seen.parameters), "parameter")
    title = f"{layers} called, {parameters} with {counted(values, 'value')}"
    lines: list[RenderableType] = [fact(seen.title, title)]
    lines.extend(Text(found.text, style="bold red", overflow="fold") for found in _found(seen))
    if seen.raised is not None:
        lines.append(fact("raised in", seen.raised or "the model", "bold red"))
    elif seen.unreached and _went_back(seen):
        text = f"{len(seen.unreached)} of {len(trainable)} that are trained: {names(seen.unreached)}"
        lines.append(fact("no gradient", text, "bold yellow"))
    if seen.not_called and seen.raised is None:
        lines.append(fact("not called", names(seen.not_called), "bold yellow"))
    lines += hidden(seen.hidden)
    lines.extend(fact("not measured", text) for text in seen.trouble)
    if seen.layers:
        lines += ["", _layers(seen.layers, width)]
    if seen.raised is not None:
        return Group(*lines)
    if seen.parameters:
        lines += ["", _parameters(seen.parameters, width)]
    gradients = f", {seen.gradients}" if seen.gradients else "; no backward pass was seen"
    if seen.scales and not any(parameter.update is not None for parameter in seen.parameters):
        gradients += f", in the scale of fp16: {', '.join(f'{scale:,.0f}' for scale in seen.scales)}"
    legend = f"value, grad: root mean square{gradients}\nupdate: length of the change / length of the parameter"
    lines += ["", Text(legend, style="dim", overflow="fold")]
    return Group(*lines)


def _went_back(seen: Inspection) -> bool:
    """Return True if a backward pass was seen."""
    tensors = (out for layer in seen.layers for call in layer.calls for out in call.outputs)
    return bool(seen.reached) or any(out.gradient is not None for out in tensors)


def _found(seen: Inspection) -> list[NotFinite]:
    return [found for found in (seen.first_nan, seen.first_inf) if found is not None]


def _layers(layers: tuple[Layer, ...], width: int) -> Table:
    columns = [("layer", 0), ("class", 0), ("output", 0), ("std", 7), ("max", 7), ("zero", 4), ("grad", 7)]
    rows = [_layer(layer, name) for layer, name in zip(layers, _tree(layers), strict=True)]
    return table(columns, shortened(rows, ".layers"), width)


def _layer(layer: Layer, name: str) -> Sequence[str | Text]:
    call = layer.calls[-1]
    times = f" x{len(layer.calls)}" if len(layer.calls) > 1 else ""
    if call.raised:
        return [f"{name}{times}", layer.kind, Text(f"raised on {call.takes}", style="bold red")]
    main = next((out for out in call.outputs if out.statistics is not None), None)
    if main is None or main.statistics is None:
        return [f"{name}{times}", layer.kind, call.gives]
    held = main.statistics
    style = "" if held.finite else "bold red"
    numbers = [Text(number(value), style=style) for value in (held.std, held.max)]
    return [f"{name}{times}", layer.kind, call.gives, *numbers, share(held.zeros), _gradient(main.gradient)]


def _tree(layers: tuple[Layer, ...]) -> list[str]:
    """Return the names, indented, without the prefix of the enclosing module."""
    around: list[str] = []
    shown = []
    for layer in layers:
        del around[layer.depth :]
        outer = around[-1] if around else ""
        name = layer.name.removeprefix(f"{outer}.") if outer else layer.name
        shown.append("  " * len(around) + (name or "(model)"))
        around.append(layer.name)
    return shown


def _parameters(parameters: tuple[ParameterSeen, ...], width: int) -> Table:
    columns = [("parameter", 0), ("shape", 0), ("value", 7), ("grad", 7), ("update", 7)]
    return table(columns, shortened([_parameter(parameter) for parameter in parameters], ".parameters"), width)


def _parameter(seen: ParameterSeen) -> Sequence[str | Text]:
    shape = f"({', '.join(map(str, seen.shape))})"
    gradient = _gradient(seen.gradient)
    if not seen.trainable:
        gradient = Text("frozen", style="dim")
    elif not seen.reached:
        gradient = Text("none", style="bold yellow")
    update = "from 0" if seen.update == float("inf") else number(seen.update)
    return [seen.name, shape, number(seen.value.rms if seen.value else None), gradient, update]


def _gradient(statistics: Statistics | None) -> Text:
    if statistics is None:
        return Text("-")
    if statistics.finite:
        return Text(number(statistics.rms))
    return Text("NaN" if statistics.nans else "Inf", style="bold red")


def _size(parameter: ParameterSeen) -> int:
    size = 1
    for length in parameter.shape:
        size *= length
    return size
