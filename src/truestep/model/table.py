"""The parameters of a model as a table: shapes, sizes, trainable counts, optimizer groups."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from truestep.errors import BadSettings
from truestep.seams.wrappers import bare

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

WIDTH = 80
_LEAST_WIDTH = 12
"""Least width of a name, on narrow terminals."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a parameter, or with `depth` all parameters of a module.

    Attributes:
        name: its name in `named_parameters()`, without the parts added by wrappers.
        shape: its sizes; "()" for a single number, "-" for a module, "?" for a parameter of a lazy module.
        dtype: the dtypes of its parameters.
        parameters: number of values; tied ones are counted only at their first name.
        trainable: number of values that get gradients.
        bytes: their size in memory.
        group: name or number of its group in the optimizer; "none" if it is in no group.
        same_as: the first name of a tied parameter; "" for others.
    """

    name: str
    shape: str
    dtype: str
    parameters: int
    trainable: int
    bytes: int
    group: str = ""
    same_as: str = ""


class ParameterTable:
    """The result of `parameter_table`; `print` shows it at 80 columns, rich at the width of the terminal.

    Attributes:
        rows: a `Row` for each line.
        parameters: number of values in all parameters, tied ones once.
        trainable: number of values that get gradients.
        bytes: size of the parameters in memory.
        buffer_bytes: size of the buffers in memory.
    """

    def __init__(self, rows: list[Row], buffer_bytes: int, *, grouped: bool) -> None:
        self.rows = rows
        self.buffer_bytes = buffer_bytes
        self._grouped = grouped

    @property
    def parameters(self) -> int:
        return sum(row.parameters for row in self.rows)

    @property
    def trainable(self) -> int:
        return sum(row.trainable for row in self.rows)

    @property
    def bytes(self) -> int:
        return sum(row.bytes for row in self.rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich import box
        from rich.table import Table

        columns = ["name", "shape", "dtype", "parameters", "trainable", *(["group"] if self._grouped else [])]
        cells = [self._cells(row) for row in self.rows]
        widths = [max(map(len, texts)) for texts in zip(columns, *cells, strict=True)]
        room = max(options.max_width - sum(widths[1:]) - 2 * len(columns), _LEAST_WIDTH)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for column in columns:
            table.add_column(
                column,
                justify="right" if column in ("parameters", "trainable") else "left",
                no_wrap=True,
                overflow="fold",
            )
        under = widths[0] > room
        holder = ""
        for row, texts in zip(self.rows, cells, strict=True):
            name = texts[0]
            if under:  # the module once, with its parameters below
                above, _, leaf = row.name.rpartition(".")
                if above and above != holder:
                    table.add_row(_broken(above, room))
                holder = above
                name = f"  {leaf}{name.removeprefix(row.name)}" if above else name
            dim = row.same_as or (row.parameters and not row.trainable)
            table.add_row(_broken(name, room), *texts[1:], style="dim" if dim else "")
        yield table
        kept = f"; buffers {_size(self.buffer_bytes)}" if self.buffer_bytes else ""
        noun = "parameter" if self.parameters == 1 else "parameters"
        yield f"{self.parameters:,} {noun}, {self.trainable:,} trainable; {_size(self.bytes)}{kept}"

    def _cells(self, row: Row) -> list[str]:
        name, count, trained = row.name, f"{row.parameters:,}", f"{row.trainable:,}"
        if row.same_as:
            name, count, trained = f"{row.name} = {row.same_as}", "shared", ""
        elif row.trainable in (0, row.parameters):
            trained = "yes" if row.trainable else "no"
        return [name, row.shape, row.dtype, count, trained, *([row.group] if self._grouped else [])]

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(file=io.StringIO(), width=WIDTH, no_color=True, highlight=False)
        with console.capture() as captured:
            console.print(self)
        return "\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n")


def parameter_table(
    model: nn.Module, optimizer: torch.optim.Optimizer | None = None, *, depth: int | None = None
) -> ParameterTable:
    """Return a table of a model's parameters, to print.

    A tied or shared parameter is counted once; its other names refer to the first one.

    Args:
        model: any module.
        optimizer: adds a column with the group of each parameter, "none" for parameters without a group.
        depth: number of name parts by which parameters are summed: 1 for one line per child of the model; None for one
            line per parameter.

    Raises:
        BadSettings: `depth` is not an integer of at least 1.

    Example:
        >>> table = parameter_table(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)))
        >>> table.parameters, table.bytes
        (13, 52)
    """
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 1):
        raise BadSettings(f"depth must be an integer of at least 1, got {depth!r}", remedy="pass depth=1 or more")
    groups = {} if optimizer is None else _groups(optimizer)
    first: dict[nn.Parameter, str] = {}
    rows: list[Row] = []
    for whole, parameter in model.named_parameters(remove_duplicate=False):
        name = bare(whole)
        group = "" if optimizer is None else groups.get(parameter, "none")
        if parameter in first:
            rows.append(Row(name, _shape(parameter), _dtype(parameter), 0, 0, 0, group, first[parameter]))
            continue
        first[parameter] = name
        count = 0 if is_lazy(parameter) else parameter.numel()
        size = count and parameter.nbytes
        trainable = count if parameter.requires_grad else 0
        rows.append(Row(name, _shape(parameter), _dtype(parameter), count, trainable, size, group))
    buffers = sum(buffer.nbytes for buffer in model.buffers() if not is_lazy(buffer))
    return ParameterTable(rows if depth is None else _added(rows, depth), buffers, grouped=optimizer is not None)


def _groups(optimizer: torch.optim.Optimizer) -> dict[torch.Tensor, str]:
    return {
        parameter: str(group.get("name", number))
        for number, group in enumerate(optimizer.param_groups)
        for parameter in group["params"]
    }


def _added(rows: list[Row], depth: int) -> list[Row]:
    """Return the rows summed by the first `depth` parts of names; a shared parameter adds nothing and gets no row."""
    parts: dict[str, list[Row]] = {}
    for row in rows:
        parts.setdefault(".".join(row.name.split(".")[:depth]), []).append(row)
    return [
        members[0]
        if len(members) == 1 and members[0].name == name
        else Row(
            name,
            "-",
            _joined(row.dtype for row in members),
            sum(row.parameters for row in members),
            sum(row.trainable for row in members),
            sum(row.bytes for row in members),
            _joined(row.group for row in members),
            members[0].same_as if all(row.same_as for row in members) else "",
        )
        for name, members in parts.items()
    ]


def _joined(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(filter(None, texts)))


def _shape(parameter: nn.Parameter) -> str:
    return "?" if is_lazy(parameter) else " x ".join(map(str, parameter.shape)) or "()"


def _dtype(parameter: nn.Parameter) -> str:
    return str(parameter.dtype).removeprefix("torch.")


def _size(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} bytes"


def _broken(name: str, room: int) -> str:
    """Return a name broken at its dots into lines that fit."""
    lines = [""]
    for part in re.findall(r"[^. ]*[. ]*", name):
        if len(lines[-1]) + len(part.rstrip()) > room and lines[-1].strip():
            lines.append("  ")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)
