"""Tables as they were measured, beside those that were scaled from them: the same quantities, or those of two domains.

Devices, sites and simulations have other ranges, and each is scaled on purpose with its own statistics.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import FrameType
from typing import Any

from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.variables.arrays import as_tensor

_BOTH = 2
_ARRAYS = frozenset({("torch", "Tensor"), ("numpy", "ndarray")})
_MOST_ROWS = 512
_MOST_COLUMNS = 128
_MOST_TABLES = 8
_EXACT = 1e-3
"""Largest error of a table that is scaled from another one, in standard deviations."""
_RATIO, _LEAST_SHARE = 2.0, 0.3
"""Least ratio of the deviations of a column, and least share of columns with it."""


def of_two_domains(scene: Scene, frames: list[FrameType], trained: Any, given: Any) -> bool:
    """Return True if variables hold the tables that two were scaled from, and their columns have other deviations.

    Args:
        scene: the scene.
        frames: frames of the user, with the variables.
        trained: rows of the training.
        given: rows of an evaluation.
    """
    found = [
        measured for table in (trained, given) for measured in itertools.islice(_measured(scene, frames, table), 1)
    ]
    if len(found) < _BOTH:
        return False
    one, other = (table.std(0).clamp_min(1e-12) for table in found)
    ratio = (one / other).maximum(other / one)
    return float((ratio >= _RATIO).double().mean()) >= _LEAST_SHARE


def _measured(scene: Scene, frames: list[FrameType], table: Any) -> Iterator[Any]:
    """Yield the tables that a table was scaled from, by a linear map of their columns."""
    torch, scaled = scene.torch, as_tensor(scene, table)
    if scaled is None or scaled.dim() != 2 or scaled.shape[1] > _MOST_COLUMNS:
        return
    held: dict[int, Any] = {
        id(value): value for frame in frames for value in variables(frame).values() if value is not table
    }
    arrays = (value for value in held.values() if (type(value).__module__, type(value).__name__) in _ARRAYS)
    tables = (value for value in arrays if tuple(value.shape) == tuple(scaled.shape))
    for value in list(tables)[:_MOST_TABLES]:
        raw = as_tensor(scene, value)
        if raw is None or not raw.is_floating_point() or bool((raw == scaled).all()):
            continue
        rows, wanted = raw[:_MOST_ROWS].double(), scaled[:_MOST_ROWS].double()
        if len(rows) < 2 * (rows.shape[1] + 1) or not bool(rows.isfinite().all() and wanted.isfinite().all()):
            continue
        spread = rows.std(0).clamp_min(1e-12)
        known = torch.cat([(rows - rows.mean(0)) / spread, torch.ones_like(rows[:, :1])], 1)
        rest = wanted - known @ torch.linalg.lstsq(known, wanted).solution
        if float(rest.square().mean().sqrt()) <= _EXACT * float(wanted.std().clamp_min(1e-12)):
            yield raw.double()
