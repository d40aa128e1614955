"""Values of repeated statements, and the operations of torch that may be repeated: they write nothing and draw nothing.

A value that was made from the result of a model carries how it was made, as far as a comparison needs to know it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from truestep.probes.evaluation.rows import Rows, narrowed

_LARGEST = 1 << 22
_KEEPING = frozenset({
    "float", "double", "half", "detach", "cpu", "numpy", "contiguous", "clone", "squeeze", "unsqueeze", "view",
    "reshape", "flatten", "view_as", "reshape_as", "expand", "expand_as", "type_as", "ravel", "to", "type",
    "repeat",
})  # fmt: skip
"""Operations after which the numbers are still those of the result."""
_JOINING = frozenset({"cat", "concat", "stack", "hstack", "vstack", "as_tensor"})
_LIKE = frozenset({"view_as", "reshape_as", "expand_as", "type_as"})
"""Operations that take only the shape or the type of their argument."""
_CHOOSING = frozenset({"argmax", "argmin"})
_EXTREME = frozenset({"max", "min", "topk", "sort"})
_LEAST_NEIGHBOURS = 8
_SYMMETRIC = 1e-4
_OTHER = frozenset({
    "eq", "ne", "gt", "lt", "ge", "le", "long", "int", "bool", "sum", "mean", "item", "permute", "transpose", "t",
    "sigmoid", "softmax", "log_softmax", "exp", "log", "round", "clamp", "abs", "size", "dim", "numel", "all", "any",
    "logical_and", "logical_or", "logical_not", "square", "sqrt", "tolist", "bitwise_and", "bitwise_or", "astype",
    "equal", "nonzero", "index_select", "gather", "stack", "cat", "sub", "add", "mul", "div", "arange", "tanh", "pow",
    "split", "chunk", "ones_like", "zeros_like", "diag", "diagonal", "trace", "nanmean", "nan_to_num", "maximum",
    "minimum", "clamp_min", "count_nonzero", "bincount", "argsort", "normalize", "cdist", "matmul", "mm",
    "hstack", "vstack", "as_tensor", "concat",
})  # fmt: skip
LOSSES = frozenset({
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cross_entropy", "nll_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
})  # fmt: skip
OPERATIONS = _KEEPING | _CHOOSING | _EXTREME | _OTHER | LOSSES
NOWHERE = object()
"""Stands for an unknown value among the variables."""
_LEGACY = ("size_average", "reduce")
_RENAMED = {"axis": "dim", "keepdims": "keepdim"}


class Unknown(Exception):
    """The value of an expression is unknown: its operation is not repeated."""


@dataclass(frozen=True, slots=True)
class Made:
    """How a value was made from the result of a model."""

    raw: bool = False
    """True if its numbers are those of the result."""
    best: bool = False
    """True if its numbers are the largest of the result, over some dimension."""
    over: str = ""
    """Dimension that `argmax` wrongly chose over: "one" (a dimension of size 1), "samples" or "all"; "least" for the
    smallest scores."""
    own: str = ""
    """Of neighbours among the same samples, if the nearest of each is the sample itself: "index", "labels" (those of
    the neighbours), or "hits" (these, compared with those of the samples)."""
    classes: int = 0
    """Of the smallest scores: the number of scores of a row."""
    shares: int = 0
    """Of a softmax over the samples: the number of scores of a row; 0 for others."""
    numbers: Any = field(default=None, compare=False)
    """Numbers of the rows of the result that its rows were made from; None if unknown."""
    labels: Any = field(default=None, compare=False)
    """Of a comparison: the target of each row."""
    by: tuple[Any, str] | None = field(default=None, compare=False)
    """The index that selected its rows, with its source; None if all are there."""
    unit: str = ""
    """Its unit: "difference" (of predictions and targets), "size" (of each), "sum" or "mean" of sizes, "root"
    of a mean, "net" (sum of differences), "spread" (of predictions around their mean); empty for others."""
    kind: str = ""
    """Of sizes and their sums: "right" (comparisons of classes), "error" (of numbers), "loss", "spread"."""
    pair: tuple[Any, Any] | None = field(default=None, compare=False)
    """Predictions and targets that it measures."""

    def fits(self, it: Any) -> bool:
        """Return True if a value has a row for each of the known rows."""
        shape: Any = getattr(it, "shape", ())
        return self.numbers is not None and len(shape) > 0 and int(shape[0]) == len(self.numbers)

    def selected(self, index: Any, torch: Any, text: str = "") -> Made:
        """Return the same for a selection of rows by an index, a slice or a mask, with its source."""
        numbers = narrowed(self.numbers, index, torch)
        labels = narrowed(self.labels, index, torch) if numbers is not None else None
        whole = numbers is self.numbers
        return replace(self, numbers=numbers, labels=labels, by=self.by if whole else (index, text))


@dataclass(slots=True)
class Value:
    """A value; ``made`` is None if it does not depend on the result of the model."""

    it: Any
    made: Made | None = None
    rows: Rows | None = None
    """Rows of a tensor of samples that it holds, if known; only of values that are not made from the result."""


def applied(
    name: str, function: Any, given: list[Value], named: dict[str, Value], samples: int, torch: Any = None
) -> Value:
    """Return the result of an operation, with the rows that it was made from.

    Args:
        name: its name.
        function: called with the values.
        given: positional arguments, of a method with the tensor itself.
        named: keyword arguments.
        samples: number of rows of the result of the model.
        torch: the module.

    Raises:
        Unknown: it raised an error, or is too large.
    """
    found = _applied(name, function, given, named, samples)
    made = next((value.made for value in given if value.made is not None and value.made.numbers is not None), None)
    if made is None:
        return found
    if name == "index_select" and len(given) > 2 and given[1].it == 0 and torch is not None:
        made = made.selected(given[2].it, torch)
    for part in found.it if type(found.it) is tuple else (found,):
        if isinstance(part, Value) and part.made is not None:
            known = made if made.fits(part.it) else Made()
            part.made = replace(part.made, numbers=known.numbers, labels=known.labels, by=known.by)
    return found


def legacy_reduction(named: dict[str, Value]) -> str:
    """Return the reduction that ``size_average`` and ``reduce`` of older programs stand for; "" without them."""
    given = {key: named[key].it for key in _LEGACY if key in named}
    if not given or any(type(value) is not bool for value in given.values()):
        return ""
    return ("mean" if given.get("size_average", True) else "sum") if given.get("reduce", True) else "none"


def _applied(name: str, function: Any, given: list[Value], named: dict[str, Value], samples: int) -> Value:
    sources = given[:1] if name in _LIKE else given
    made = next((value.made for value in sources if value.made is not None), None)
    reduction = legacy_reduction(named)
    if reduction:  # torch would warn of the older arguments at a line of this package
        named = {key: value for key, value in named.items() if key not in _LEGACY} | {"reduction": Value(reduction)}
    named = {_RENAMED.get(key, key): value for key, value in named.items()}
    size = max((int(value.it.numel()) for value in given if _is_sized(value.it)), default=0)
    if size > _LARGEST:
        raise Unknown
    if name in ("numpy", "astype", "contiguous", "cpu", "detach", "clone"):
        return Value(given[0].it.detach(), made, given[0].rows)
    try:
        found = function(*(value.it for value in given), **{key: value.it for key, value in named.items()})
    except Exception:
        raise Unknown from None
    if made is None:
        kept = name in _KEEPING or name in ("long", "int", "bool")
        return Value(found, rows=given[0].rows if kept and given else None)
    if name in _KEEPING or (name in _JOINING and type(given[0].it) is list):  # a list of results
        return Value(found, made)
    over = _over(given, named, samples) if made.raw and name in _CHOOSING | _EXTREME else ""
    least = made.raw and not over and _is_least(name, given, named)
    selected = Made(over="least", classes=int(given[0].it.shape[-1])) if least else Made(over=over)
    if name in _CHOOSING | _EXTREME or name == "argsort":
        selected = replace(selected, own=_own(given[0].it, found[1] if isinstance(found, tuple) else found))
    if name in _CHOOSING or name == "argsort":
        return Value(found, selected if name in _CHOOSING else Made(own=selected.own))
    if name in _EXTREME and isinstance(found, tuple):
        best, chosen = Made(best=made.raw), selected
        return Value((Value(found[0], best), Value(found[1], chosen)), made)
    if name in ("softmax", "log_softmax") and made.raw and _is_over_samples(given, named, samples):
        return Value(found, Made(shares=int(given[0].it.shape[1])))
    after = replace(made, raw=False, best=False) if name in ("long", "int", "bool") else Made()
    return Value(found, after)


def _own(similar: Any, chosen: Any) -> str:
    """Return "index" if similarities are those of samples among themselves, and each is nearest to itself."""
    shape: tuple[int, ...] = tuple(getattr(similar, "shape", ()))
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < _LEAST_NEIGHBOURS or chosen.shape[:1] != shape[:1]:
        return ""
    first = chosen if chosen.dim() == 1 else chosen[:, 0]
    own = bool((first == first.new_ones(shape[0]).cumsum(0) - 1).all())
    symmetric = own and bool(similar.sub(similar.mT).abs().max() <= _SYMMETRIC * similar.abs().max())
    return "index" if symmetric else ""


def _is_sized(value: object) -> bool:
    """Return True for tensors and arrays; classes such as ``torch.FloatTensor`` have their methods too."""
    return hasattr(value, "numel") and not isinstance(value, type)


def marked(labels: Any, target: Any) -> str:
    """Return "hits" if the first label of each sample's neighbours is its own, and "all" if there are no others.

    Empty for other labels, and if each sample has a label alone: its pair is searched then.
    """
    if not (_is_sized(labels) and _is_sized(target)) or labels.is_floating_point():
        return ""
    first, known = labels if labels.dim() == 1 else labels[:, 0], target.reshape(-1)
    if known.numel() != first.numel() or len(known.unique()) == known.numel() or not bool((first == known).all()):
        return ""
    return "all" if labels.numel() == first.numel() else "hits"


def after_first(index: Any) -> bool:
    """Return True if an index leaves out the first column: the nearest neighbour of each sample."""
    column = index[1] if isinstance(index, tuple) and len(index) == 2 else 0
    return bool(column.start) if isinstance(column, slice) else type(column) is int and column != 0


def _is_least(name: str, given: list[Value], named: dict[str, Value]) -> bool:
    """Return True if an operation selects the smallest scores of each row of a matrix."""
    if name not in ("argmin", "min", "topk") or getattr(given[0].it, "ndim", 0) != 2:
        return False
    largest = named["largest"].it if "largest" in named else given[3].it if len(given) > 3 else True
    return name != "topk" or largest is False


def in_a_row(name: str, values: list[Value], named: dict[str, Value]) -> bool:
    """Return True if an operation chooses among the shares of a row, which a softmax made for each column."""
    made = values[0].made if values else None
    if made is None or not made.shares or name not in _CHOOSING | _EXTREME or values[0].it.dim() != 2:
        return False
    places = [named[key].it for key in ("dim", "axis") if key in named]
    places = places or [value.it for value in values[2 if name == "topk" else 1 :][:1]]
    return places in ([1], [-1])


def _is_over_samples(given: list[Value], named: dict[str, Value], samples: int) -> bool:
    """Return True if a softmax of scores runs over the samples, each of which has a row."""
    shape = tuple(given[0].it.shape)
    places = [value.it for value in given[1:2]] + [named[key].it for key in ("dim",) if key in named]
    return len(shape) == 2 and shape[0] == samples != shape[1] > 1 and places in ([0], [-2])


def _over(given: list[Value], named: dict[str, Value], samples: int) -> str:
    """Return the kind of the dimension that a result is reduced over if it is not that of the classes."""
    source = given[0].it
    places = [value.it for value in given[1:2]] + [named[key].it for key in ("dim",) if key in named]
    dim = next((place for place in places if type(place) is int), None)
    if dim is None:
        return "all" if not places and source.dim() > 1 and samples > 1 else ""
    if not -source.dim() <= dim < source.dim() or source.dim() < 2:
        return ""
    if int(source.shape[dim]) == 1:
        return "one"
    first = dim % source.dim() == 0 and source.dim() == 2
    return "samples" if first and int(source.shape[0]) == samples != int(source.shape[1]) else ""
