"""Batches of DataLoaders as they were fetched: row k of one part goes with row k of the others.

The values of a few columns of each part are copied at sampled steps, since programs change and rebind the tensors.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from truestep import source
from truestep.events import Site
from truestep.probes.active.rows.orders import codes_of, ranks
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values

LEAST_ROWS = 8
_MOST_ROWS = 4096
_MOST_WHOLE = 256
_MOST_COLUMNS = 64
_MOST_CELLS = 1 << 24
_MOST_FIELDS = 8
_MOST_BATCHES = 6
_DEEP = 3
_DISTINCT = 0.9
_MOST_ALIKE = 512
"""Largest number of rows that are matched by their likeness."""
_LEAST_COLUMNS = 8
_NEARER = 0.4
"""Largest distance of a row to its origin, relative to that of the next one."""
_LIKE = 0.6
_BEYOND = 0.15
"""Least correlation of a row with its origin, and its distance to that with the next one."""

Path = tuple[Any, ...]


@dataclass(slots=True)
class Field:
    """A part of a batch: some columns of its rows."""

    name: str
    values: Any
    whole: bool
    """True if all columns were copied."""
    width: int


@dataclass(slots=True)
class Fetched:
    """A batch: its parts with one row for each sample."""

    rows: int
    fields: list[Field]


@dataclass(slots=True)
class Located:
    """Rows that were found in a batch."""

    batch: Fetched
    field: Field
    places: Any


class Batches:
    """The batches that were fetched in the current step.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._step = -1
        self._kept: list[Fetched] = []

    def drawn(self, batch: Any) -> None:
        """Copy some values of a batch, at a sampled step."""
        scene = self._scene
        self._begin()
        tensors = [(path, tensor) for path, tensor in tensors_of(scene.torch, batch) if _is_plain(scene, tensor)]
        if len(tensors) < 2:
            return
        rows = int(tensors[0][1].shape[0])
        if not LEAST_ROWS <= rows <= _MOST_ROWS or any(len(tensor) != rows for _, tensor in tensors):
            return
        names = names_of(scene.site(), batch)
        fields = []
        for place, (path, tensor) in enumerate(tensors[:_MOST_FIELDS]):
            width = tensor.numel() // rows
            name = names.get(path) or (f"batch[{path[0]!r}]" if len(path) == 1 else f"part {place + 1} of the batch")
            fields.append(Field(name, sampled(scene, tensor, rows), width <= _MOST_WHOLE, width))
        self._kept = [Fetched(rows, fields), *self._kept[: _MOST_BATCHES - 1]]

    def any(self) -> bool:
        """Return True if a batch was fetched in this step."""
        self._begin()
        return bool(self._kept)

    def _begin(self) -> None:
        if self._scene.sampling.step != self._step:
            self._step, self._kept = self._scene.sampling.step, []

    def locate(self, value: Any) -> Located | None:
        """Return the place of each row of a tensor in a batch of the step; None if it is unknown."""
        scene = self._scene
        if not self.any() or not _is_plain(scene, value) or not LEAST_ROWS <= len(value) <= _MOST_ROWS:
            return None
        rows = len(value)
        values, width = sampled(scene, value, rows), value.numel() // rows
        for find in (self._in_place, self._by_value, self._by_rank, self._by_likeness):
            for batch in self._kept:
                for field in batch.fields:
                    if field.width == width:
                        places = find(values, field.values, value.is_floating_point())
                        if places is not None:
                            return Located(batch, field, places)
        return None

    def _in_place(self, values: Any, known: Any, floating: bool) -> Any:
        torch, rows = self._scene.torch, len(values)
        if values.shape != known.shape or not bool((values == known).all()):
            return None
        counts = torch.unique(known, dim=0, return_counts=True)[1]
        enough = len(counts) >= LEAST_ROWS or (len(counts) > 1 and int(counts.max()) * 4 <= 3 * rows)
        return torch.arange(rows) if enough else None

    def _by_value(self, values: Any, known: Any, floating: bool) -> Any:
        torch = self._scene.torch
        one, two = codes_of(torch, known, values)
        order = one.argsort()
        if len(torch.unique(one)) < max(LEAST_ROWS, _DISTINCT * len(one)):
            return None
        at = torch.searchsorted(one[order], two).clamp_(max=len(one) - 1)
        return order[at] if bool((one[order][at] == two).all()) else None

    def _by_rank(self, values: Any, known: Any, floating: bool) -> Any:
        torch = self._scene.torch
        if values.shape != known.shape or known.shape[1] < 2:
            return None
        return self._by_value(ranks(torch, values), ranks(torch, known), floating)

    def _by_likeness(self, values: Any, known: Any, floating: bool) -> Any:
        """Return the places of rows with added noise, or with changed parts."""
        torch, rows = self._scene.torch, len(values)
        if values.shape != known.shape or known.shape[1] < 2 or rows > _MOST_ALIKE:
            return None
        if floating:
            one, two = _standard(values), _standard(known)
            near = torch.cdist(one, two).topk(2, dim=1, largest=False)
            places = near.indices[:, 0]
            if self._is_clear(near.values[:, 0] <= _NEARER * near.values[:, 1], places):
                return places
            alike = _normed(one) @ _normed(two).T
        else:
            alike = torch.stack([(known == row).float().mean(1) for row in values])
        if known.shape[1] < _LEAST_COLUMNS:
            return None
        best = alike.topk(2, dim=1)
        clear = (best.values[:, 0] >= _LIKE) & (best.values[:, 0] - best.values[:, 1] >= _BEYOND)
        places = best.indices[:, 0]
        return places if self._is_clear(clear, places) else None

    def _is_clear(self, clear: Any, places: Any) -> bool:
        """Return True if nearly all rows have one origin, and no two the same."""
        return float(clear.float().mean()) >= _DISTINCT and len(self._scene.torch.unique(places)) == len(places)


def sampled(scene: Scene, value: Any, rows: int) -> Any:
    """Return a copy of some columns of a tensor, as a table of so many rows."""
    table = value.detach().reshape(rows, -1)
    width = table.shape[1]
    if width > _MOST_WHOLE:
        table = table[:, :: width // _MOST_COLUMNS][:, :_MOST_COLUMNS]
    return table.to(scene.torch.float32, copy=True)


def _standard(table: Any) -> Any:
    table = table - table.mean(0)
    return table / table.std(0).clamp_min(1e-6)


def _normed(table: Any) -> Any:
    return table / table.norm(dim=1, keepdim=True).clamp_min(1e-6)


def _is_plain(scene: Scene, value: Any) -> bool:
    return (
        type(value) is scene.torch.Tensor
        and value.is_cpu
        and has_values(value)
        and value.dim() > 0
        and 0 < value.numel() <= _MOST_CELLS
        and not value.is_complex()
        and not value.is_quantized
        and not value.requires_grad
    )


def tensors_of(torch: Any, batch: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the tensors of a batch with their positions."""
    if type(batch) is torch.Tensor:
        yield path, batch
    elif len(path) < _DEEP and issubclass(type(batch), Mapping) and issubclass(type(batch), dict):
        for key, value in list(dict.items(batch))[: 2 * _MOST_FIELDS]:
            yield from tensors_of(torch, value, (*path, key))
    elif len(path) < _DEEP and type(batch) in (tuple, list):
        for place, value in enumerate(batch[: 2 * _MOST_FIELDS]):
            yield from tensors_of(torch, value, (*path, place))


def names_of(site: Site | None, batch: Any) -> dict[Path, str]:
    """Return the variables that a loop, or an assignment, binds to the parts of a batch that is fetched at its line."""
    tree = None if site is None else source.parsed(site.path)
    found: dict[Path, str] = {}
    if site is None or tree is None or type(batch) not in (tuple, list):
        return found
    for node in source.walk(tree):
        if not isinstance(node, ast.For | ast.Assign | ast.comprehension):
            continue
        value = node.value if isinstance(node, ast.Assign) else node.iter
        if not value.lineno <= site.line <= (value.end_lineno or value.lineno):
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        for inner in source.walk(target):
            if isinstance(inner, ast.Tuple | ast.List) and len(inner.elts) == len(batch):
                found |= dict(_named(inner))
        if isinstance(target, ast.Name):
            for one in source.walk(tree):
                if not isinstance(one, ast.Assign) or not isinstance(one.value, ast.Name | ast.ListComp):
                    continue
                roots = {name.id for name in source.walk(one.value) if isinstance(name, ast.Name)}
                if target.id in roots and one.lineno >= site.line and isinstance(one.targets[0], ast.Tuple):
                    found = dict(_named(one.targets[0])) | found
    return found


def _named(target: ast.Tuple | ast.List) -> Iterator[tuple[Path, str]]:
    for place, one in enumerate(target.elts):
        if isinstance(one, ast.Name):
            yield (place,), one.id
        elif isinstance(one, ast.Tuple):
            for inside, inner in enumerate(one.elts):
                if isinstance(inner, ast.Name):
                    yield (place, inside), inner.id
