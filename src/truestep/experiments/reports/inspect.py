"""The report of `truestep inspect`: tables of layers, the tree of each loss, memory; and JSON."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from truestep.debugging._tables import counted, names, number, share
from truestep.experiments.inspect.inspect import Cut, Inspected, Loss, Memory, ModelFacts, Place, Term
from truestep.experiments.inspect.rows import Row, rows_of
from truestep.experiments.profile.bottleneck import near, size

SCHEMA = "truestep.inspect/1"
_WIDE = 104
"""Columns from which a table has the inputs, the types and the means as well."""
_MOST, _LAST = 60, 12
"""Most rows of a table, and the number of them taken from the end."""
_NARROWEST = 10
_ALIKE = 0.5
"""Largest difference of the numbers of repeated blocks, relative to the smaller one, that are shown as their mean."""
_OUTPUTS = "std, zero: standard deviation and share of zeros of the output"
_GRADIENTS = (
    "; |grad|: length of the gradient of the row's own parameters, as the optimizer used it; /|w|: divided by the "
    "length of these parameters"
)


def text(found: Inspected, folder: str, width: int = 80, depth: int | None = None) -> RenderableType:
    """Return the report on a step.

    Args:
        found: the step.
        folder: paths below this folder are shown relative to it.
        width: columns of the terminal.
        depth: most modules around a row of the tables; None shows all.
    """
    parts: list[RenderableType] = [*_head(found, folder, width)]
    for model in sorted(found.models, key=lambda model: not model.gradients):
        parts += ["", *_model(model, width, depth, found.ended)]
    if found.models:
        legend = _OUTPUTS + (_GRADIENTS if any(model.gradients for model in found.models) else "")
        parts += ["", *(Text(line, style="dim") for line in wrap(legend, width))]
    for tree in _losses(found, folder):
        parts += ["", tree]
    if found.ended:
        parts += ["", *_memory(found, width)]
    return Group(*parts)


def _head(found: Inspected, folder: str, width: int) -> Iterator[RenderableType]:
    steps = [f"{kind} ({_at(site, folder)})" if site else kind for kind, site in found.optimizers]
    of = f" of {' and '.join(steps)}" if steps else ", made by the script itself"
    passes = counted(found.passes, "backward pass").replace("passs", "passes")
    if not found.ended:
        yield from _lines("inspect", f"step {found.step}, up to the error that ended the script", width)
        yield from _lines("crashed", found.outcome.last_line, width, "bold red")
        return
    stopped = "stopped" if found.outcome.how == "stopped" else "over"
    yield from _lines("inspect", f"step {found.step}{of}, {passes}; the script was {stopped} after it", width)
    if found.outcome.how == "crashed":
        yield from _lines("crashed", f"after this step: {found.outcome.last_line}", width, "bold red")
    if not found.models:
        why = "no module was called in this step: functions of torch are seen only in the graph of the loss"
        yield from _lines("no layers", why, width)
    for trouble in found.trouble:
        yield from _lines("not seen", trouble, width)


def _model(model: ModelFacts, width: int, depth: int | None, ended: bool) -> Iterator[RenderableType]:
    trained = [one for one in model.parameters if one.trainable]
    values, learnt = sum(one.values for one in model.parameters), sum(one.values for one in trained)
    all_of = "all trainable" if learnt == values else f"{learnt:,} trainable" if learnt else "none trainable"
    held = f"{counted(len(model.layers), 'layer')} called, {counted(values, 'parameter')}, {all_of}"
    yield Text.assemble((model.name, "bold"), f" ({model.kind}): {held}", overflow="fold")
    if not model.gradients and learnt and ended:
        yield from _lines("no gradients", "no backward pass of this step reached it", width)
    for problem in filter(None, (model.first_nan, model.first_inf)):
        yield Text(problem, style="bold red", overflow="fold")
    lost = [one.name for one in trained if not one.reached]
    if model.gradients and lost:
        yield from _lines("no gradient", f"{len(lost)} of {len(trained)} tensors: {names(lost)}", width, "bold yellow")
    if model.not_called and ended:
        yield from _lines("not called", names(_runs(model.not_called)), width, "bold yellow")
    if model.tied:
        shown = [f"{other} is {first}" for other, first in model.tied.items()]
        yield from _lines("tied", names(shown, 4), width)
    for name, why, modules in model.hidden:
        part = f"{counted(modules, 'module')} inside {name or 'the model'}"
        yield from _lines("hidden", f"{part}: {why} calls no hooks; parameters and losses are seen", width)
    for trouble in model.not_measured:
        yield from _lines("not measured", trouble, width)
    rows = rows_of(model, depth)
    types = _types(rows)
    if len(types) > 1 or types not in ([], ["float32"]):
        counts = Counter(row.layers[0].dtype for row in rows)
        yield from _lines(
            "types of outputs", ", ".join(f"{kind} in {counted(counts[kind], 'row')}" for kind in types), width
        )
    if rows:
        yield _table(rows, width, bool(model.gradients))


def _lines(title: str, text: str, width: int, style: str = "bold") -> list[Text]:
    """Return a line with a title, wrapped and indented."""
    lines = wrap(f"{title}: {text}", width, subsequent_indent="  ", break_on_hyphens=False) or [f"{title}:"]
    first = Text(lines[0])
    first.stylize(style, 0, len(title) + 1)
    return [first, *map(Text, lines[1:])]


# --- the table ---


def _table(rows: Sequence[Row], width: int, trained: bool) -> Table:
    wide = width >= _WIDE
    types = wide and len(_types(rows)) > 1
    columns = ["layer", *(["input"] if wide else []), "output", *(["type"] if types else []), "params"]
    columns += [*(["mean"] if wide else []), "std", "zero", *(["|grad|", "/|w|"] if trained else [])]
    shown = list(rows)
    if len(shown) > _MOST:
        shown = shown[: _MOST - _LAST] + shown[-_LAST:]
    cells = [_cells(row, wide, types)[: len(columns)] for row in shown]
    texts = [index for index, title in enumerate(columns) if title in ("layer", "input", "output")]
    widths = [max(len(columns[index]), *(len(row[index]) for row in cells)) for index in range(len(columns))]
    room = width - len(columns) + 1 - sum(widths[index] for index in range(len(columns)) if index not in texts)
    while sum(widths[index] for index in texts) > max(room, _NARROWEST * len(texts)):
        widths[max(texts, key=lambda index: widths[index])] -= 1
    made = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for index, title in enumerate(columns):
        left = index in texts or title == "type"
        made.add_column(
            title, justify="left" if left else "right", width=widths[index], no_wrap=True, overflow="ellipsis"
        )
    for index, row in enumerate(cells):
        if len(rows) > _MOST and index == _MOST - _LAST:
            made.add_row(Text(f"... {len(rows) - _MOST} more", style="dim"), Text("--depth, json", style="dim"))
        made.add_row(*row)
    return made


def _cells(row: Row, wide: bool, types: bool) -> list[Text]:
    layer = row.layers[0]
    times = f" x{layer.calls}" if layer.calls > 1 else ""
    title = Text.assemble("  " * row.depth, row.name, (f" {layer.kind}{times}", "dim"))
    bad = "" if all(one.finite for one in row.layers) else "bold red"
    output = Text(f"raised on {layer.input}", style="bold red") if layer.raised else Text(layer.output)
    params = Text(_count(row.values) if row.values else "tied" if row.tied else "")
    cells = [title, *([Text(layer.input)] if wide else []), output]
    cells += [*([Text(layer.dtype)] if types else []), params]
    if wide:
        cells.append(Text(_range([one.mean for one in row.layers]), style=bad))
    cells.append(Text(_range([one.std for one in row.layers]), style=bad))
    cells.append(Text(_shares([one.zeros for one in row.layers])))
    return [*cells, *_gradient(row)]


def _gradient(row: Row) -> tuple[Text, Text]:
    """Return the cells of the gradient and of its ratio to the weights."""
    if row.state == "frozen":
        return Text("frozen", style="dim"), Text()
    if row.state == "none":
        return Text("none", style="bold yellow"), Text()
    if not row.gradients:
        return Text(), Text()
    style = "" if all(map(math.isfinite, row.gradients)) else "bold red"
    return Text(_range(row.gradients), style=style), Text(_range(row.ratios), style=style)


def _types(rows: Sequence[Row]) -> list[str]:
    """Return the types of the outputs, the most frequent first."""
    return [kind for kind, _ in Counter(row.layers[0].dtype for row in rows if row.layers[0].dtype).most_common()]


def _range(values: Sequence[float | None]) -> str:
    """Return a number; of several the mean, or the smallest and the largest if they differ by more than half.

    >>> _range([0.25]), _range([0.249, 0.3]), _range([0.249, 1.21, 0.5]), _range([-0.00041, 0.26])
    ('0.25', '0.27', '0.2..1', '-4e-4..0.3')
    """
    known = [value for value in values if value is not None]
    if not known:
        return ""
    if any(not math.isfinite(value) for value in known):
        return "NaN" if any(map(math.isnan, known)) else "Inf"
    least, most = min(known), max(known)
    if most - least <= _ALIKE * min(abs(least), abs(most)):
        return number(sum(known) / len(known))
    first, last = _one_digit(least), _one_digit(most)
    return first if first == last else f"{first}..{last}"


def _one_digit(value: float) -> str:
    digit, _, exponent = f"{value:.0e}".partition("e")
    return f"{value:.1g}" if -2 <= int(exponent) < 3 or not value else f"{digit}e{int(exponent)}"


def _shares(values: Sequence[float | None]) -> str:
    """Return the mean share of zeros."""
    known = [value for value in values if value is not None]
    return share(sum(known) / len(known)) if known else ""


def _count(values: int) -> str:
    """Return a number of values in at most seven characters.

    >>> [_count(values) for values in (64, 4810, 123_456, 7_087_872, 6_580_000_000)]
    ['64', '4,810', '123,456', '7.09 M', '6.58 G']
    """
    if values < 1_000_000:
        return f"{values:,}"
    return f"{values / 1e6:.3g} M" if values < 999_500_000 else f"{values / 1e9:.3g} G"


# --- losses ---


def _losses(found: Inspected, folder: str) -> Iterator[RenderableType]:
    """Yield a tree for each loss; equal ones of an accumulation are one."""
    groups: dict[object, list[Loss]] = {}
    for loss in found.losses:
        groups.setdefault((_form(loss.whole), loss.site, loss.without_gradient, loss.cuts), []).append(loss)
    for group in groups.values():
        yield _tree(group, folder)


def _form(term: Term) -> object:
    return term.name, term.operation, term.factor, term.reaches, term.tensors, tuple(_form(one) for one in term.terms)


def _tree(group: Sequence[Loss], folder: str) -> Tree:
    loss = group[0]
    wholes = [one.whole for one in group]
    tree = Tree(_label(wholes, loss.site, folder, len(group)), guide_style="dim")
    _branches(tree, loss.whole)
    for one in loss.without_gradient:
        by = f"cut by {one.by}" if one.by else "from values without one"
        where = f" ({_at(one.site, folder)})" if one.site else ""
        term = " and ".join(one.parts) or "a term"
        tree.add(Text.assemble(term, (" no gradient", "bold yellow"), f": {by}{where}"))
    for cut in loss.cuts:
        tree.add(_cut(cut, folder))
    for why in loss.hidden:
        tree.add(Text(f"the operations inside {why} are hidden", style="dim"))
    return tree


def _label(terms: Sequence[Term], site: Place | None, folder: str, times: int) -> Text:
    at = f" ({_at(site, folder)})" if site else ""
    many = f", {times} times" if times > 1 else ""
    values = sorted(term.value for term in terms if term.value is not None)
    shown = [f"{value:.4g}" for value in (*values[:1], *values[1:][-1:])]
    label = _named(terms[0], "..".join(dict.fromkeys(shown)))
    return Text.assemble(("loss: ", "bold"), label, at, many)


def _named(term: Term, value: str) -> Text:
    """Return the name of a term, its factor, value and operation."""
    factor = "" if term.factor == 1.0 else "-" if term.factor == -1.0 else "? x " if term.factor is None else None
    factor = f"{term.factor:.3g} x " if factor is None else factor
    shown = term.name or term.operation
    text = Text.assemble(f"{factor}{shown}", f" = {value}" if value else "")
    if term.name:
        text.append(f", {term.operation}", "dim")
    return text


def _branches(tree: Tree, term: Term) -> None:
    for one in term.terms:
        _branches(tree.add(_named(one, "" if one.value is None else f"{one.value:.4g}")), one)
    if not term.terms:
        for reach in term.reaches:
            everything = "all " if reach.parameters == reach.of else ""
            amount = f"{everything}{reach.parameters} of {reach.of}" if not everything else f"all {reach.of}"
            held = f"{amount} trained tensors, {counted(reach.values, 'value')}"
            tree.add(Text.assemble(names(_runs(reach.parts), 8), (f" ({held})", "dim")))
        shown = [f"{name or 'a tensor'} ({', '.join(map(str, shape))})" for name, shape in term.tensors]
        if shown:
            tree.add(Text(names(shown, 8)))
        if not term.reaches and not term.tensors:
            tree.add(Text("reaches no parameter", style="bold yellow"))


def _cut(cut: Cut, folder: str) -> Text:
    where = f" ({_at(cut.site, folder)})" if cut.site else ""
    by = f": cut by {cut.by}{where}" if cut.by else ", called in this step"
    return Text.assemble(("not reached: ", "bold yellow"), names(_runs(cut.parts), 8), by)


def _runs(parts: Iterable[str]) -> list[str]:
    """Return names that differ only in one number, which counts up, as one.

    >>> _runs(["net.blocks.0", "net.blocks.1", "net.blocks.2", "net.head", "net.h.3.drop", "net.h.4.drop"])
    ['net.blocks.0-2', 'net.head', 'net.h.3-4.drop']
    """
    found: list[tuple[list[str], int]] = []
    last: list[str] = []
    for part in parts:
        steps = part.split(".")
        place = _counted_up(last, steps)
        if place is not None and found[-1][1] in (place, -1):
            merged = found[-1][0]
            merged[place] = f"{merged[place].partition('-')[0]}-{steps[place]}"
            found[-1] = (merged, place)
        else:
            found.append((list(steps), -1))
        last = steps
    return [".".join(steps) for steps, _ in found]


def _counted_up(before: Sequence[str], after: Sequence[str]) -> int | None:
    """Return the only place at which two names differ, if it is a number and the next one."""
    if len(before) != len(after):
        return None
    places = [index for index, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
    if len(places) != 1:
        return None
    one, other = before[places[0]], after[places[0]]
    return places[0] if one.isdigit() and other.isdigit() and int(other) == int(one) + 1 else None


# --- memory ---


def _memory(found: Inspected, width: int) -> list[Text]:
    memory: Memory = found.memory
    kinds = Counter(kind for kind, _ in found.optimizers)
    state = f"state of {' and '.join(kinds)} {size(memory.optimizer)}, " if kinds else ""
    buffers = f"buffers {size(memory.buffers)}, " if memory.buffers else ""
    saved = "unknown" if memory.saved is None else size(memory.saved)
    text = f"parameters {size(memory.parameters)}, {buffers}gradients {size(memory.gradients)}, {state}"
    return _lines("memory", f"{text}kept for the backward pass {saved} ({memory.device})", width)


def _at(site: Place | None, folder: str) -> str:
    return "" if site is None else f"{near(site[0], folder)}:{site[1]}"


def document(found: Inspected) -> dict[str, object]:
    """Return the step as values for JSON: numbers that are not finite are null."""
    fields = dataclasses.asdict(found)
    outcome = fields.pop("outcome")
    made: dict[str, object] = _plain({"schema": SCHEMA, **fields, "how": outcome["how"]})
    return made


def _plain(value: object) -> dict[str, object]:
    plain: dict[str, object] = {}
    assert isinstance(value, dict)
    for key, one in value.items():
        plain[key] = _finite(one)
    return plain


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return _plain(value)
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
