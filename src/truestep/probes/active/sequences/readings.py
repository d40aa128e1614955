"""Targets that stand for missing readings, behind a mask that looks for NaN and leaves nothing out.

The tape of a loss has the mask, all ones, and the errors that it multiplies. If one value of the targets is far from
all others and comes again and again, as zeros of a sensor that was silent, the errors have two groups: the smaller one
is of these targets, and counts in the loss.
"""

from __future__ import annotations

import ast
import functools
import math
from types import FrameType
from typing import Any

from truestep import source
from truestep.events import ReadingsRead, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, saved
from truestep.probes.variables.arrays import Held, arrays, as_tensor, shape_of

_PRODUCT, _INDEX, _WHERE = "MulBackward0", "IndexBackward0", "WhereBackward0"
_SIZES = ("AbsBackward0", "PowBackward0")
_LOSSES = ("MseLossBackward0", "L1LossBackward0", "SmoothL1LossBackward0", "HuberLossBackward0")
_ROUNDING = 1e-6
_MOST_READS = 4
_MOST_LINES = 16
_MOST_NODES = 24
_MOST_VALUES = 1 << 20
_LEAST_VALUES = 64
_LEAST_COLUMNS = 3
_LEAST_SHARE, _MOST_SHARE = 0.02, 0.4
_LEAST_ROWS = 100
_MOST_ROWS = 20_000
_MOST_COLUMNS = 512
_GAP = 0.4
"""Least distance of the repeated value from all others, as a part of their extent."""
_DISTINCT = 0.8
"""Least share of different values among the others."""
_RUNS = 0.2
"""Largest share by which rows after one with the repeated value have it more often than all rows."""
_MOST_SPREAD = 2.0
"""Largest variance of the number of such values in a row, as a multiple of that of independent ones."""
_NEAR = 1.7
"""Largest ratio of the share of the smaller group of errors to that of the repeated value."""
_NAMES = frozenset({"isnan", "isfinite"})
_ELSEWHERE = frozenset({"np", "numpy", "math", "pd"})


class Readings:
    """Emits `ReadingsRead` for the first losses of each line.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are read.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._reads: dict[Site | None, int] = {}

    def differentiated(self, root: Any, site: Site | None, frame: FrameType | None) -> None:
        """Handle a backward pass at a sampled step, before it runs."""
        scene, number = self._scene, self._reads.get(site, 0)
        node = root
        if node is None or frame is None or number >= _MOST_READS or len(self._reads) >= _MOST_LINES:
            return
        self._reads[site] = number + 1
        made = next(filter(None, map(_looked_for, scene.sites.own_files())), None)
        if made is None:
            self._reads[site] = _MOST_READS
            return
        with self._aside(), scene.sampling.timed(None):
            errors = _behind_idle_mask(scene.torch, node)
            found = None if errors is None else self._repeated(errors, arrays(scene, scene.sites.users(frame)))
        if found is not None:
            name, value, share = found
            scene.emit(ReadingsRead(table=name, value=value, share=share, made=Site(*made), site=site))

    def _repeated(self, errors: Any, held: list[Held]) -> tuple[str, float, float] | None:
        """Return the array of the targets, its repeated value (NaN if it differs by column), and the share of it."""
        torch = self._scene.torch
        group = _smaller_group(errors.double().flatten())
        shape = tuple(errors.shape)
        for one in held if group else ():
            size = shape_of(torch, one.value)
            if size[1:] != shape[1:] or not max(_LEAST_ROWS, shape[0]) <= size[0] <= _MOST_ROWS:
                continue
            if getattr(one.value, "requires_grad", False) or "float" not in str(one.value.dtype):
                continue
            table = as_tensor(self._scene, one.value)
            columns = () if table is None else table.double().reshape(len(table), -1).T[:_MOST_COLUMNS]
            if len(columns) < _LEAST_COLUMNS:
                continue
            read = [found for column in columns if (found := _repeated_value(column)) is not None]
            if len(read) < len(columns) or _at_once(torch.stack([*columns]), [value for value, _ in read]):
                continue
            share = sum(share for _, share in read) / len(read)
            if 1 / _NEAR <= group / share <= _NEAR:
                values = {value for value, _ in read}
                return one.name, values.pop() if len(values) == 1 else math.nan, share
        return None


def _behind_idle_mask(torch: Any, root: Any) -> Any:
    """Return the errors that a mask of ones multiplies or selects, next to the end of a loss; None without one."""
    queue, seen = [root], {root}
    idle, errors = None, None
    while queue and len(seen) < _MOST_NODES:
        node = queue.pop(0)
        name = str(node.name())
        if name == _INDEX or (errors is None and name in (_PRODUCT, _WHERE)):
            found = _idle(torch, node, name)
            if found is False:
                return None
            idle = idle or found
        errors = _errors(torch, node, name) if errors is None else errors
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)
    if idle is None or errors is None or errors.numel() != math.prod(idle):
        return None
    return errors.detach().reshape(idle)


def _errors(torch: Any, node: Any, name: str) -> Any:
    """Return the errors that an operation of a loss takes; None for other operations."""
    errors: Any = saved(node, "self") if name in (*_SIZES, *_LOSSES) else None
    if type(errors) is not torch.Tensor or not has_values(errors) or not errors.is_floating_point():
        return None
    if not _LEAST_VALUES <= errors.numel() <= _MOST_VALUES:
        return None
    if name in _SIZES:
        return errors
    target = saved(node, "target")
    usable = type(target) is torch.Tensor and has_values(target) and target.shape == errors.shape
    return errors.detach() - target.detach() if usable else None


def _idle(torch: Any, node: Any, name: str) -> Any:
    """Return the shape of a mask that keeps every position; False for one that does not; None for no mask."""
    follows = [following is not None for following, _ in node.next_functions]
    if follows.count(True) != 1:
        return None
    if name == _WHERE:
        mask = saved(node, "condition")
        mask = mask if mask is None or follows[0] else ~mask
    elif name == _INDEX:
        given = [one for one in saved(node, "indices") or () if one is not None]
        mask = given[0] if len(given) == 1 and given[0].dtype is torch.bool else None
    else:
        mask = saved(node, "self" if follows.index(True) else "other")
    if type(mask) is not torch.Tensor or not has_values(mask) or not 1 < mask.numel() <= _MOST_VALUES:
        return None
    if not bool((mask != 0).all()):
        return False
    ones = mask.dtype is torch.bool or bool(((mask - 1).abs() < _ROUNDING).all())
    return tuple(mask.shape) if ones and mask.dim() > 1 else None


def _smaller_group(errors: Any) -> float:
    """Return the share of the smaller group of errors, if the widest gap between them divides them; else 0."""
    ordered = errors[errors.isfinite()].sort().values
    number = len(ordered)
    if number < _LEAST_VALUES:
        return 0.0
    gaps = ordered.diff()
    at = int(gaps.argmax()) + 1
    smaller = min(at, number - at)
    larger = ordered[at:] if at < number - at else ordered[:at]
    wide = float(gaps.max()) >= _GAP / 4 * float(larger[-1] - larger[0])
    return smaller / number if wide and smaller > 1 else 0.0


def _repeated_value(column: Any) -> tuple[float, float] | None:
    """Return the value that a column of different numbers has again and again, far from all others, and its share."""
    if not bool(column.isfinite().all()):
        return None
    values, counts = column.unique(return_counts=True)
    most = int(counts.argmax())
    share = int(counts[most]) / len(column)
    if most not in (0, len(values) - 1) or not _LEAST_SHARE <= share <= _MOST_SHARE:
        return None  # within the others
    others = values[1:] if most == 0 else values[:-1]
    number = len(column) - int(counts[most])
    if len(others) < _DISTINCT * number:
        return None
    gap = float((others[0] - values[0]) if most == 0 else (values[-1] - others[-1]))
    if gap < _GAP * float(others[-1] - others[0]):
        return None
    missing = column == values[most]
    after = float(missing[1:][missing[:-1]].double().mean())
    return (float(values[most]), share) if after <= share + _RUNS else None


def _at_once(columns: Any, values: list[float]) -> bool:
    """Return True if rows have the repeated values of many columns at once, as on a day on which all shops are shut."""
    missing = columns == columns.new_tensor(values)[:, None]
    share = missing.double().mean(1)
    return float(missing.sum(0).double().var()) > _MOST_SPREAD * float((share * (1 - share)).sum())


@functools.lru_cache(maxsize=1024)
def _looked_for(path: str) -> tuple[str, int, int, int, int] | None:
    """Return the place of the first call in a file that looks for NaN in a tensor."""
    if not any(name in line for line in source.read(path).lines for name in _NAMES):
        return None  # to parse all files of a large program takes long
    for node in source.walk(source.parsed(path) or ast.Module([], [])):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _NAMES:
            owner = node.func.value
            if not (isinstance(owner, ast.Name) and owner.id in _ELSEWHERE):
                end = node.end_lineno or node.lineno, node.end_col_offset or 0
                return path, node.lineno, node.col_offset, *end
    return None
