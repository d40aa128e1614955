"""Series that windows were cut from: arrays of variables, or the windows themselves, put together again.

A window is found by its values, which are equal one by one. Windows in another order than that of their series, with
noise, or scaled one by one belong to no series.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from truestep.probes.context.scene import Scene
from truestep.probes.variables.arrays import MOST_CELLS, Held, as_tensor, shape_of

_LEAST_STEPS = 4
"""Least length of a window."""
_LEAST_ROWS = 100
_MOST_READ = 24
"""Most arrays that are read for one batch."""
_MOST_PLACES = 64
_FARTHEST = 64
"""Most steps from a window to its target."""


class Source(NamedTuple):
    """A series with all windows of a batch.

    Attributes:
        held: the array.
        values: the series (steps, columns).
        cut: True if the array has the windows, False if it is the series.
    """

    held: Held
    values: Any
    cut: bool


def windows_of(scene: Scene, batch: Any, most: int = 6) -> list[Any]:
    """Return some samples of a batch that can be windows of a series; none if they are constant."""
    value = as_tensor(scene, batch)
    if value is None or not value.is_floating_point() or not 2 <= value.dim() <= 3 or not len(value):
        return []
    if getattr(batch, "requires_grad", False) or value[0].numel() < _LEAST_STEPS:
        return []
    some = [value[at].float().clone() for at in range(0, len(value), max(1, len(value) // most))]
    return [one for one in some if float(one.amin()) < float(one.amax())]


def sources_of(scene: Scene, windows: list[Any], held: list[Held]) -> Iterator[Source]:
    """Yield the series with all of some windows, among arrays."""
    shape, read = tuple(windows[0].shape), 0
    forms = [shape_of(scene.torch, one.value) for one in held]
    targets = {form[0] for form in forms if form[1:] == shape}  # one for each window: a series without its first steps
    for one, form in zip(held, forms, strict=True):
        series = form and form[0] >= _LEAST_ROWS and (len(form) == 1 or (len(form) == 2 and form[1] < form[0]))
        series = series and form[0] not in targets
        cut = form[1:] == shape and form[0] >= _LEAST_ROWS
        if not (series or cut) or "float" not in str(one.value.dtype) or _cells(form) > MOST_CELLS:
            continue
        if read >= _MOST_READ:
            return
        read += 1
        table = as_tensor(scene, one.value)
        if table is None:
            continue
        table = table.float()
        if series and all(holds(table.reshape(len(table), -1), window) for window in windows):
            yield Source(one, table.reshape(len(table), -1), False)
        elif cut and all(bool((table == window).flatten(1).all(1).any()) for window in windows):
            beside = [other.value for other in held if shape_of(scene.torch, other.value)[:1] == form[:1]]
            whole = _joined(scene, table, beside)
            if whole is not None and len(whole) >= _LEAST_ROWS:
                yield Source(one, whole, True)


def holds(series: Any, window: Any) -> bool:
    """Return True if a window of several steps is in a series (steps, columns); its channels can come first."""
    columns = series.shape[1]
    orders = [window.reshape(-1)] if window.dim() == 1 else [window.reshape(-1), window.T.reshape(-1)]
    for flat in orders:
        steps, rest = divmod(len(flat), columns)
        if rest or steps < _LEAST_STEPS or steps > len(series):
            continue
        first = (series[: len(series) - steps + 1] == flat[:columns]).all(1).nonzero().flatten()
        for at in first[:_MOST_PLACES].tolist():
            if bool((series[at : at + steps].reshape(-1) == flat).all()):
                return True
    return False


def _cells(form: tuple[int, ...]) -> int:
    cells = 1
    for size in form:
        cells *= size
    return cells


def _joined(scene: Scene, table: Any, beside: list[Any]) -> Any:
    """Return the series of a table of windows in their order, each a fixed number of steps after the one before.

    Targets that are the next steps of each window add the end. None if the windows do not overlap in this way.
    """
    forms = [table[:, :, None]] if table.dim() == 2 else [table, table.transpose(1, 2)]
    for windows in forms:
        by = _distance(windows)
        if by:
            series = scene.torch.cat([windows[0], windows[1:, -by:].reshape(-1, windows.shape[2])])
            for other in beside:
                targets = as_tensor(scene, other)
                if targets is None or not targets.is_floating_point() or targets.numel() > MOST_CELLS:
                    continue
                whole = _with_end(scene.torch, windows, series, targets.float(), by)
                if whole is not None:
                    return whole
            return series
    return None


def _distance(windows: Any) -> int:
    """Return the number of steps between two windows that follow each other; 0 if they do not."""
    steps = windows.shape[1]
    for by in range(1, steps // 2 + 1):
        if float(windows[0, by:].amin()) == float(windows[0, by:].amax()):
            return 0
        if bool((windows[1, : steps - by] == windows[0, by:]).all()):
            return by if bool((windows[1:, : steps - by] == windows[:-1, by:]).all()) else 0
    return 0


def _with_end(torch: Any, windows: Any, series: Any, targets: Any, by: int) -> Any:
    """Return a series with the targets of its last windows; None if the targets are not its next steps.

    Targets of one column continue this column alone.
    """
    rows, columns = len(windows), windows.shape[2]
    new = windows[1:, -by:]
    wide = targets[0].numel() % columns == 0
    for some in [list(range(columns))] if wide else [[at] for at in range(columns)]:
        ahead = targets.reshape(rows, -1, len(some))
        if by <= ahead.shape[1] and bool((ahead[:-1, :by] == new[:, :, some]).all()):
            return torch.cat([series[:, some], ahead[-1]])
        if by > 1 or ahead.shape[1] > 1:
            continue
        for far in range(2, min(_FARTHEST, rows // 4)):
            if bool((ahead[:-far, 0] == windows[far:, -1, some]).all()):
                return torch.cat([series[:, some], ahead[-far:, 0]])
    return None
