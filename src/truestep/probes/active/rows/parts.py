"""Parts of a batch that are equal: two inputs of one step, the two halves of an input, all rows of an input."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from truestep.events import PartsCompared, RowsEqualled, Site
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.variables.origins import made_at, mentions, root_of, stored_by
from truestep.seams.refs import Ref

_FRAMES = 3
_MOST_ITEMS = 16
_MOST_GIVEN = 16
_MOST_VALUES = 1 << 22
_LEAST_ROWS = 8
_LEAST_COMPARED = 4
_LEAST_DIFFERENT = 3
"""Least number of different rows of a part with few values, such as bits."""
_LEAST_EQUAL = 0.9
"""Least share of equal rows: an environment that is reset has others between."""
_LEAST_VALUES = 4
"""Least number of different values of a row, or of a part."""
_CONSTANT = "constant"
"""Instead of the digest of a row, for rows of hardly more than one number."""


class _Given(NamedTuple):
    """An argument of a call, held by a variable."""

    ref: Ref
    name: str
    frame: int
    """Id of the frame with the variable."""
    stored: ast.Assign | ast.For | None
    """Statement that stored it."""
    tracked: bool
    """True if the result of the call tracks gradients."""
    leads: bool
    """True for the first argument of the call."""


class Parts:
    """Emits `PartsCompared` and `RowsEqualled`, at sampled steps.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._step = -1
        self._given: list[_Given] = []
        """Arguments of the calls of the current step."""
        self._halved: set[int] = set()
        """Models with an argument of two equal halves."""
        self._rows: dict[int, str] = {}
        """Model to the digest of the one row of its latest batch; empty after a batch of different rows."""

    def called(self, model: int, site: Site | None, frame: FrameType, given: tuple[Any, ...], result: Any) -> None:
        """Compare the arguments of a call with those of the earlier calls of the step.

        Args:
            model: number of the model.
            site: line of the call.
            frame: torch's frame of it.
            given: its arguments.
            result: its result.
        """
        scene = self._scene
        if scene.sampling.step != self._step:
            self._step, self._given = scene.sampling.step, []
        batches = [value for value in given if self._is_batch(value)]
        if not batches:
            return
        tracked = self._tracks(result)
        with scene.sampling.timed(None):
            found = list(self._named(frame, batches))
            for value, name, holder in found:
                stored = stored_by(holder, name)
                now = _Given(Ref(value), name, id(holder), stored, tracked, given[0] is value)
                for pair, equal in self._pairs(now, value):
                    self._tell(model, pair, site, made_at(scene, holder, name), equal=equal, rows=len(value))
            batches = [value for value in batches if len(value) >= _LEAST_ROWS]
            if tracked and batches:
                self._look(model, batches, next(((name, holder) for _, name, holder in found), None), site, result)

    def _tracks(self, result: Any) -> bool:
        parts = result if isinstance(result, tuple | list) else (result,)
        return any(isinstance(part, self._scene.torch.Tensor) and part.requires_grad for part in parts)

    def _is_batch(self, value: Any) -> bool:
        return (
            type(value) is self._scene.torch.Tensor
            and value.is_cpu
            and value.dim() > 0
            and value.shape[0] >= _LEAST_COMPARED
            and value.numel() <= _MOST_VALUES
            and not value.requires_grad
            and not value.is_complex()
            and not value.is_quantized
            and has_values(value)
        )

    # --- two inputs of a step ----------------------------------------------------------------------------------

    def _named(self, frame: FrameType, batches: list[Any]) -> Iterator[tuple[Any, str, FrameType]]:
        """Yield the arguments that variables of the program's frames hold, with their names."""
        wanted = {id(value): value for value in batches}
        for holder in self._scene.sites.users(frame)[:_FRAMES]:
            for name, value in variables(holder).items():
                for shown, item in _items(name, value):
                    if id(item) in wanted:
                        yield wanted.pop(id(item)), shown, holder

    def _pairs(self, now: _Given, value: Any) -> list[tuple[tuple[str, str], bool]]:
        """Return the pairs of an argument with the earlier ones of its form, and True for equal ones; keep it."""
        found: list[tuple[tuple[str, str], bool]] = []
        if any(one.ref() is value and one.name == now.name and one.tracked >= now.tracked for one in self._given):
            return found  # compared at an earlier call
        for before in self._given:
            other = before.ref()
            if other is None or other is value or before.name == now.name or before.frame != now.frame:
                continue
            if (
                value.is_floating_point()
                and other.shape == value.shape
                and other.dtype == value.dtype
                and (before.tracked or now.tracked)
            ):
                equal = self._is_equal(other, value, leads=before.leads and now.leads)
                if equal is not None:
                    found.append(((before.name, now.name), equal and not _is_derived(before, now)))
        if len(self._given) < _MOST_GIVEN and all(before.ref() is not value for before in self._given):
            self._given.append(now)
        return found

    def _is_equal(self, one: Any, two: Any, *, leads: bool) -> bool | None:
        """Return True for equal parts; None if they are equal, but cannot tell anything.

        Args:
            one: the first part.
            two: the second part.
            leads: True if both are the first arguments of their calls. Others with few values may be masks or classes.
        """
        if one.untyped_storage().data_ptr() == two.untyped_storage().data_ptr():
            return False
        if float((one == two).reshape(len(one), -1).all(1).float().mean()) < _LEAST_EQUAL:
            return False
        if not bool((one != one[:1]).any()):
            return None if len(one) < _LEAST_ROWS else False
        if len(one.unique()) >= _LEAST_ROWS:
            return True
        if not leads or one.dim() < 2:
            return False
        one_hot = bool((one.reshape(len(one), -1).sum(1) == 1).all())
        return None if one_hot or len(one.unique(dim=0)) < _LEAST_DIFFERENT else True

    def _tell(
        self, model: int, pair: tuple[str, str], site: Site | None, made: Site | None, *, equal: bool, rows: int
    ) -> None:
        place = {"made": made, "site": site}
        self._scene.tell(PartsCompared, model=model, one=pair[0], other=pair[1], equal=equal, rows=rows, **place)

    # --- rows of an input --------------------------------------------------------------------------------------

    def _look(
        self,
        model: int,
        batches: list[Any],
        named: tuple[str, FrameType] | None,
        site: Site | None,
        result: Any,
    ) -> None:
        """Look for equal rows, and equal halves, of the arguments of a call in training."""
        name, made = "", None
        first = batches[0]
        rows = len(first)
        several = [value for value in batches if len(value) == rows]
        same = all(bool((value == value[:1]).all()) for value in several)
        alike = same and 0 not in first.stride() and len(first[0].unique()) >= _LEAST_VALUES
        halves = not alike and rows % 2 == 0 and all(self._has_halves(value, rows // 2) for value in several)
        halves = halves and first.is_floating_point() and self._has_halves(result, rows // 2)
        before = self._rows.get(model)  # None before the first look
        if (alike or halves) and named is not None:
            name, made = named[0], made_at(self._scene, named[1], named[0])
        if same or before or before is None:
            digest = hashlib.blake2b(first[0].detach().contiguous().numpy().tobytes()).hexdigest() if alike else ""
            moved = bool(alike and before and before not in (digest, _CONSTANT))
            self._rows[model] = digest or (_CONSTANT if same else "")
            self._scene.tell(
                RowsEqualled,
                model=model,
                rows=rows,
                equal=same,
                constant=same and not alike,
                moved=moved,
                name=name,
                made=made,
                site=site,
            )
        if halves or model in self._halved:
            self._halved.add(model)
            self._tell(model, ("first half", "second half"), site, made, equal=halves, rows=rows // 2)

    def _has_halves(self, value: Any, rows: int) -> bool:
        if not isinstance(value, self._scene.torch.Tensor) or value.dim() == 0 or len(value) != 2 * rows:
            return False
        value = value.detach()
        one, two = value[:rows], value[rows:]
        return bool((one == two).all()) and bool((one != one[:1]).any())


def _items(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a variable, and the parts of a small collection."""
    yield name, value
    if isinstance(value, tuple | list) and len(value) <= _MOST_ITEMS:
        yield from ((f"{name}[{place}]", item) for place, item in enumerate(value))
    elif type(value) is dict and len(value) <= _MOST_ITEMS:
        yield from ((f"{name}[{key!r}]", item) for key, item in value.items())


def _is_derived(one: _Given, two: _Given) -> bool:
    """Return True if a statement makes one of two variables from the other."""
    for first, second in ((one, two), (two, one)):
        if root_of(first.name) != root_of(second.name) and mentions(first.stored, second.name):
            return True
    return False
