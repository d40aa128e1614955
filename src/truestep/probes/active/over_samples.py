"""The first operation of a model that runs over the samples of a batch, such as a mean over the first dimension.

`ByPlace` finds another one: it adds a row of a table to each sample by the place of the sample in the batch.

Two runs of a copy are recorded, operation by operation: one on the batch, one on a batch in which all samples but one
are replaced. An operation mixes samples if its arguments have the same values for that sample in both runs, and its
result does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from truestep.events import Site
from truestep.probes.active.trial import operations
from truestep.probes.context.scene import Scene
from truestep.probes.copies.objects import Refused

_MOST_OPERATIONS = 2000
_LARGEST_RECORD = 64 << 20
_EQUAL = 1e-4
_MISTAKES = frozenset({
    "mean", "sum", "max", "amax", "min", "amin", "median", "norm", "logsumexp", "prod", "softmax", "log_softmax",
    "normalize", "select", "scaled_dot_product_attention",
})  # fmt: skip
"""Operations over samples that are seldom intended; products and gathers serve graphs, memories and contrasts."""

_JOINING = frozenset({"add", "__add__", "__radd__", "add_", "__iadd__", "mul", "__mul__", "__rmul__", "cat", "concat"})

Slices = dict[int, Any]
"""Dimension with the length of the batch, to the values of the sample along it."""


@dataclass(slots=True)
class _Operation:
    """One operation, with the values of the sample in its arguments and its result."""

    name: str
    site: Site | None
    given: list[Slices] = field(default_factory=list)
    of: list[int] = field(default_factory=list)
    """Numbers of operations with results without samples, which it got; for such a result, where it comes from."""
    made: Slices = field(default_factory=dict)
    whole: bool = False
    """True if its result has no dimension of the samples, while an argument had one."""


class OverSamples:
    """Records the operations of a run.

    Args:
        scene: the scene.
        samples: number of samples in the batch.
        at: index of the sample that stays.
    """

    def __init__(self, scene: Scene, samples: int, at: int) -> None:
        self._scene, self._samples, self._at = scene, samples, at
        self._found: list[_Operation] = []
        self._alive: list[Any] = []
        """Results, so that no other tensor gets their identity."""
        self._numbers: dict[int, int] = {}
        """Identity of a result without samples to the number of its operation."""
        self._bytes = 0

    def mode(self) -> Any:
        """Return a torch function mode that records."""
        return operations(self._scene.torch, self._run)

    def _run(self, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        given = self.given(args, kwargs)
        result = function(*args, **kwargs)
        self.made(_name(function, args, result), given, result)
        return result

    def taken(self) -> list[_Operation]:
        """Return the operations recorded since the last call."""
        found, self._found = self._found, []
        self._alive.clear()
        self._numbers.clear()
        self._bytes = 0
        return found

    def given(self, args: Any, kwargs: dict[str, Any]) -> tuple[list[Slices], list[int]]:
        """Return the values of the sample in the arguments of an operation, before it can overwrite them."""
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, self._scene.torch.Tensor)]
        slices = [part for part in map(self._slices, tensors) if part]
        return slices, [self._numbers[id(value)] for value in tensors if id(value) in self._numbers]

    def made(self, name: str, given: tuple[list[Slices], list[int]], result: Any) -> None:
        """Record an operation with its result."""
        first = next(iter(result), None) if isinstance(result, tuple | list) and result else result
        if not isinstance(first, self._scene.torch.Tensor) or not (given[0] or given[1]):
            return
        made = self._slices(first)
        whole = not made
        if whole:
            self._numbers[id(first)] = len(self._found)
        self._alive.append(first)
        self._found.append(_Operation(name, self._scene.site(), *given, made, whole))
        self._bytes += sum(part.numel() * part.element_size() for part in made.values())
        if len(self._found) > _MOST_OPERATIONS or self._bytes > _LARGEST_RECORD:
            raise Refused("it has too many operations to analyse")

    def _slices(self, tensor: Any) -> Slices:
        if not tensor.numel() or tensor.is_complex() or tensor.layout is not self._scene.torch.strided:
            return {}
        lengths = enumerate(tensor.shape)
        return {dim: tensor.select(dim, self._at).detach().clone() for dim, n in lengths if n == self._samples}


def mixing(first: list[_Operation], second: list[_Operation]) -> tuple[str, Site | None]:
    """Return name and line of the first operation that mixes samples by mistake; ("", None) if there is none.

    Args:
        first: operations of a run on the batch.
        second: operations of a run with other samples beside the one that stays.
    """
    if [one.name for one in first] != [two.name for two in second]:
        return "", None
    for one, two in zip(first, second, strict=True):
        if one.whole or not one.given or not all(map(_keep, one.given, two.given)):
            continue
        if _keep(one.made, two.made):
            continue
        over = one
        while over.of and (over is one or not over.given):
            over = first[over.of[-1]]
        known = over.name in _MISTAKES or (over is one and over.name == "linear" and _ends_with_samples(one, two))
        return (over.name, over.site) if known else ("", None)
    return "", None


def _name(function: Any, args: Any, result: Any) -> str:
    """Return the name of an operation; an index that drops a dimension selects, others do not."""
    name = str(getattr(function, "__name__", ""))
    if name != "__getitem__":
        return name
    return "select" if result.dim() < args[0].dim() else "slice"


def _keep(one: Slices, two: Slices) -> bool:
    """Return True if the values of the sample are equal along a dimension."""
    return any(dim in two and part.shape == two[dim].shape and _equal(part, two[dim]) for dim, part in one.items())


def _ends_with_samples(one: _Operation, two: _Operation) -> bool:
    """Return True if the samples are the last dimension of the input of a layer, which takes them for features."""
    slices, others = one.given[0], two.given[0]
    kept = [dim for dim, part in slices.items() if _keep({dim: part}, others)]
    last = next(iter(slices.values())).dim()  # a slice lacks one dimension
    return last > 0 and kept == [last]


def _equal(one: Any, two: Any) -> bool:
    differing = one != two  # infinite values of a mask are equal, and their difference is none
    if not bool(differing.any()):
        return True
    size = one.double().nan_to_num(0.0, 0.0, 0.0).abs().max()
    return bool(((one.double() - two.double())[differing].abs() <= _EQUAL * size).all())


class ByPlace:
    """Records the first operation that gives equal samples different rows of a table, by their place in the batch.

    Args:
        scene: the scene.
        copy: the copy of the model, with its parameters and buffers.
        samples: number of samples in the batch, which are all equal.
    """

    def __init__(self, scene: Scene, copy: Any, samples: int) -> None:
        self._scene, self._samples = scene, samples
        held = (*copy.named_parameters(), *copy.named_buffers())
        self._tables = {id(value): name for name, value in held if value.dim() > 1 and value.shape[0] > samples}
        self._looked_up: dict[int, tuple[Any, str]] = {}
        """Identity of a result of an embedding to it and the name of the table."""
        self.table = ""
        self.site: Site | None = None

    def mode(self) -> Any:
        """Return a torch function mode that records."""
        return operations(self._scene.torch, self._run)

    def _run(self, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        result = function(*args, **kwargs)
        if not self.table:
            self.made(str(getattr(function, "__name__", "")), args, result)
        return result

    def made(self, name: str, args: Any, result: Any) -> None:
        """Handle one operation."""
        tensor = self._scene.torch.Tensor
        if name == "embedding":
            found = [self._tables[id(value)] for value in args if id(value) in self._tables]
            if found and isinstance(result, tensor) and self._differs(result):
                self._looked_up[id(result)] = result, found[0]
        elif name in _JOINING:
            parts = [value for value in (args[0] if name.startswith("c") else args) if isinstance(value, tensor)]
            rows = [value for value in parts if value.dim() > 1 and value.shape[0] == self._samples]
            tables = [self._table_of(value) for value in rows if self._differs(value)]
            if len(parts) == len(rows) > len(tables) > 0 and all(tables):
                if len({value.dim() for value in rows}) == 1:
                    self.table, self.site = tables[0], self._scene.site()

    def _differs(self, value: Any) -> bool:
        return bool(value.dim() > 1 and value.shape[0] == self._samples and (value != value[:1]).any())

    def _table_of(self, value: Any) -> str:
        """Return the name of the table that a tensor is a slice or a lookup of; empty for other tensors."""
        whole = value if value._base is None else value._base
        return self._tables.get(id(whole)) or self._looked_up.get(id(whole), (None, ""))[1]
