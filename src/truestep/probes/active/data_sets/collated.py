"""Check: a collate function moves a part of its batch, and leaves the others in place.

The same samples are joined again in another order. A collate function that sorts the inputs by their length, and leaves
the labels where they are, then pairs them in another way.
"""

from __future__ import annotations

import ast
import contextlib
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from types import FunctionType, MethodType
from typing import Any

from truestep import source
from truestep.events import CollatedAgain, Site
from truestep.probes.active import restored_states
from truestep.probes.active.rows.fetched import Path, names_of, tensors_of
from truestep.probes.context.scene import Scene
from truestep.probes.copies.objects import Refused, copy_of, mind
from truestep.seams.code.functions import code_of

_SAMPLES = 12
_SEEDS = (31, 32)
_MOST_LOADERS = 8
_ORDERING = frozenset({"sorted", "sort", "argsort", "shuffle", "permutation", "randperm"})
Rows = list[bytes]


class Collated:
    """Emits `CollatedAgain`, once for each loader with a collate function of the program.

    Args:
        scene: the scene.
        aside: returns the context manager in which the function is called.
    """

    def __init__(self, scene: Scene, aside: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
        self._scene = scene
        self._aside = aside
        self._met: set[int] = set()

    def drawn(self, loader: int, iterator: Any, batch: Any) -> None:
        """Check the collate function of a loader, after its first batch.

        Raises:
            Refused: the function cannot be called again.
        """
        scene, join = self._scene, getattr(iterator, "_collate_fn", None)
        data = getattr(iterator, "_dataset", None)
        if loader in self._met or len(self._met) >= _MOST_LOADERS:
            return
        self._met.add(loader)
        function = _function(join)
        if function is None or scene.sites.kind(code_of(function)) != 0 or _length(data) < 2 * _SAMPLES:
            return
        site = scene.site()
        names = names_of(site, batch)
        with self._aside(), restored_states.kept(scene.torch):
            crossed = tuple(_crossed(scene, data, join))
        shown = tuple(sorted(tuple(sorted(_name(path, names) for path in pair)) for pair in crossed))
        called = type(join).__name__ if function.__name__ == "__call__" else function.__name__
        made = _made(function) if crossed else None
        scene.emit(CollatedAgain(loader=loader, function=called, crossed=shown, made=made, site=site))


def _function(join: Any) -> FunctionType | None:
    """Return the function of the program that joins samples: one itself, a method, or that of an object."""
    found = join.__func__ if isinstance(join, MethodType) else join
    found = found if isinstance(found, FunctionType) else type(found).__dict__.get("__call__")
    return found if isinstance(found, FunctionType) else None


def _length(data: Any) -> int:
    """Return the number of samples; 0 for data without indices or a length."""
    if not hasattr(data, "__getitem__"):
        return 0
    try:
        return len(data)
    except Exception:  # a length that the class cannot tell
        return 0


def _crossed(scene: Scene, data: Any, join: Any) -> Iterator[tuple[Path, Path]]:
    """Yield the pairs of parts that belong together in another way if the samples come in another order."""
    step = _length(data) // (2 * _SAMPLES)
    places = range(0, 2 * _SAMPLES * step, step)
    if isinstance(data, list | tuple):
        samples, join = copy_of(([data[place] for place in places], join), scene)
    else:
        whole, join = copy_of((data, join), scene)
        samples = _read(whole, places)
    some, others = samples[::2], samples[1::2]
    turned = [*some[5::-1], *some[:5:-1]]
    base = _joined(scene, some, join, _SEEDS[0])
    drawn = _joined(scene, some, join, _SEEDS[1])
    moved = _joined(scene, turned, join, _SEEDS[0])
    other = _joined(scene, others, join, _SEEDS[0])
    if not base.keys() == drawn.keys() == moved.keys() == other.keys():
        return
    counts = {path: Counter(rows) for path, rows in base.items()}
    kept = [
        path
        for path, count in counts.items()
        if len(count) > 1 and base[path] == drawn[path]  # not drawn at random
        and count == Counter(moved[path]) and not base[path] == moved[path] == other[path]  # not numbers of places
        and list(counts.values()).count(count) == 1  # not another part in another order, as negative samples
    ]  # fmt: skip
    for one, two in combinations(kept, 2):
        if Counter(zip(base[one], base[two], strict=True)) != Counter(zip(moved[one], moved[two], strict=True)):
            yield one, two


def _read(data: Any, places: range) -> list[Any]:
    try:
        return [data[place] for place in places]
    except Exception as error:
        raise Refused(f"a copy of it raised {type(error).__name__}") from None


def _joined(scene: Scene, samples: list[Any], join: Any, seed: int) -> dict[Path, Rows]:
    """Return the rows of each part of a batch, by its position; only parts with a row for each sample.

    Raises:
        Refused: the function raises an error, or no time is left.
    """
    mind(scene)
    restored_states.seed(scene.torch, seed)
    try:
        batch = join(copy.deepcopy(samples))
    except Exception as error:
        raise Refused(f"a copy of it raised {type(error).__name__}") from None
    parts = tensors_of(scene.torch, batch)
    return {path: _rows(value) for path, value in parts if value.dim() and len(value) == len(samples)}


def _rows(value: Any) -> Rows:
    return [row.detach().cpu().contiguous().numpy().tobytes() for row in value]


def _name(path: Path, names: dict[Path, str]) -> str:
    return names.get(path) or f"batch[{path[0]!r}]" if path else "batch"


def _made(function: FunctionType) -> Site:
    """Return the only call in a function that orders something; without one, the first line of the function."""
    code = code_of(function)
    tree = source.parsed(code.co_filename)
    last = max((line for *_, line in code.co_lines() if line), default=code.co_firstlineno)
    found = [
        node
        for node in (source.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Call) and code.co_firstlineno <= node.lineno <= last and _called(node) in _ORDERING
    ]
    if len(found) != 1:
        return Site(code.co_filename, code.co_firstlineno, function=code.co_name)
    node = found[0]
    end, end_column = node.end_lineno or node.lineno, node.end_col_offset or -1
    return Site(code.co_filename, node.lineno, node.col_offset, end, end_column, code.co_name)


def _called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
