"""Rows of samples that are repeated in one order, and joined with rows of another order.

`x.repeat(3, 1)` has all samples three times, one after another; `x.repeat_interleave(3, 0)` and rows of (samples, 3)
that were flattened have the three rows of a sample next to each other. Two runs of a copy show which order a tensor
has: of the rows of one sample, those at the places of one order are the same, although all other samples are replaced.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from truestep.events import Site
from truestep.probes.active.trial import operations
from truestep.probes.context.scene import Scene

_MOST_OPERATIONS = 2000
_LARGEST_RECORD = 64 << 20
_EQUAL = 1e-4
_JOINING = frozenset({
    "add", "__add__", "__radd__", "add_", "__iadd__", "sub", "__sub__", "__rsub__", "mul", "__mul__", "__rmul__",
    "mul_", "div", "__truediv__", "cat", "concat", "concatenate", "hstack", "cosine_similarity", "bmm", "matmul",
    "__matmul__", "einsum", "bilinear", "stack", "masked_fill", "masked_fill_", "where", "baddbmm", "addcmul", "lerp",
})  # fmt: skip
_VIEWS = frozenset({"view", "reshape", "unflatten"})
_LEAST = 2
_OF_A_MASK = 1e4
"""Least size of a value that a mask fills in."""


class _Rows(NamedTuple):
    """The rows of one sample in a tensor, at their places in either order."""

    after: Any
    """One sample after another, over and over."""
    beside: Any
    """Those of a sample next to each other."""
    times: int


class _Operation(NamedTuple):
    """One operation on rows of samples."""

    name: str
    site: Site | None
    given: list[_Rows]
    made: _Rows | None
    parts: Any
    """Rows of the sample in a view as (samples, times, ...); None for other results."""


class Repeats:
    """Records the operations of a run on tensors with several rows for each sample.

    Args:
        scene: the scene.
        samples: number of samples in the batch.
        at: index of the sample that stays.
    """

    def __init__(self, scene: Scene, samples: int, at: int) -> None:
        self._scene, self._samples, self._at = scene, samples, at
        self._found: list[_Operation] = []
        self._bytes = 0

    def mode(self) -> Any:
        """Return a torch function mode that records."""
        return operations(self._scene.torch, self._run)

    def _run(self, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        given = self.given(args)
        result = function(*args, **kwargs)
        self.made(str(getattr(function, "__name__", "")), given, result)
        return result

    def taken(self) -> list[_Operation]:
        """Return the operations recorded since the last call."""
        found, self._found = self._found, []
        self._bytes = 0
        return found

    def given(self, args: Any) -> list[_Rows]:
        """Return the rows of the sample in the arguments of an operation, before it can overwrite them."""
        flat = [one for value in args for one in (value if isinstance(value, tuple | list) else (value,))]
        return [rows for rows in map(self._rows, flat) if rows is not None]

    def made(self, name: str, given: list[_Rows], result: Any) -> None:
        """Record an operation with its result."""
        if not isinstance(result, self._scene.torch.Tensor):
            return
        made, parts = self._rows(result), None
        if given and name in _VIEWS and tuple(result.shape[:2]) == (self._samples, given[0].times):
            parts = result[self._at].detach().clone()
        if made is None and parts is None:
            return
        if len(self._found) < _MOST_OPERATIONS and self._bytes < _LARGEST_RECORD:
            self._found.append(_Operation(name, self._scene.site(), given, made, parts))

    def _rows(self, value: Any) -> _Rows | None:
        torch, samples = self._scene.torch, self._samples
        if not isinstance(value, torch.Tensor) or not value.dim() or not value.numel() or value.is_complex():
            return None
        times, rest = divmod(value.shape[0], samples)
        # As many rows as pairs of samples are those of all pairs.
        if rest or times < _LEAST or times == samples or value.layout is not torch.strided:
            return None
        value = value.detach()
        after = value[self._at :: samples].clone()
        self._bytes += 2 * after.numel() * after.element_size()
        return _Rows(after, value[self._at * times : (self._at + 1) * times].clone(), times)


def crossed(first: list[_Operation], second: list[_Operation]) -> tuple[str, Site | None, int]:
    """Return name, line and number of repeats of the operation that made rows of another order; ("", None, 0) without.

    Args:
        first: operations of a run on the batch.
        second: operations of a run with other samples beside the one that stays.
    """
    if [one.name for one in first] != [two.name for two in second]:
        return "", None, 0
    repeated: tuple[str, Site | None, int] = "", None, 0
    for one, two in zip(first, second, strict=True):
        given = [_order(a, b) for a, b in zip(one.given, two.given, strict=False)]
        made = "" if one.made is None or two.made is None else _order(one.made, two.made)
        if made == "after" and not repeated[0] and "after" not in given and one.made is not None:
            repeated = one.name, one.site, one.made.times
        joined = one.name in _JOINING and {"after", "beside"} <= {*given} and made == "mixed"
        parted = one.parts is not None and given == ["after"] and not _equal(one.parts, two.parts)
        if joined or parted:
            return repeated
    return "", None, 0


def _order(one: _Rows, two: _Rows) -> str:
    """Return the order of the rows: "after" or "beside" each other, "both" if all rows are kept, or "mixed"."""
    after, beside = _equal(one.after, two.after), _equal(one.beside, two.beside)
    return "both" if after and beside else "after" if after else "beside" if beside else "mixed"


def _equal(one: Any, two: Any) -> bool:
    if one.shape != two.shape:
        return False
    if not bool((one != two).any()):
        return True
    one, two = one.double().nan_to_num(), two.double().nan_to_num()
    size = one.abs()[one.abs() < _OF_A_MASK]
    return bool(((one - two).abs().max() <= _EQUAL * (size.max() if size.numel() else 1.0)).item())
