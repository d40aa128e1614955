"""Positions that a loss counts, and their targets: on its tape, from the last sum down to the loss of each position."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from truestep.probes.backward.loss_terms.mask_forms import signed
from truestep.probes.backward.origin import shape_of
from truestep.probes.context.values import has_values, saved

_MOST_NODES = 64
_MOST_TERMS = 8
_MOST_BETWEEN = 10
_LARGEST = 1 << 20
_SUMS = ("SumBackward0", "MeanBackward0")
_SUMS_OVER = ("SumBackward1", "MeanBackward1")
_CLASSES = ("NllLossBackward0", "NllLoss2DBackward0")
_ERRORS = ("MseLossBackward0", "L1LossBackward0", "SmoothL1LossBackward0", "HuberLossBackward0")
_BINARY = ("BinaryCrossEntropyBackward0", "BinaryCrossEntropyWithLogitsBackward0")
_SIZES = ("AbsBackward0", "PowBackward0")
_SAME = ("NegBackward0", "CloneBackward0", "AliasBackward0", "ToCopyBackward0", "SqrtBackward0")
_VIEWS = (
    "ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0", "SqueezeBackward0", "SqueezeBackward1",
    "SqueezeBackward2", "UnsqueezeBackward0",
)  # fmt: skip
_LEAF = "torch::autograd::AccumulateGrad"
Results = Mapping[tuple[Any, int], Any]
"""Results of models without their tapes, by the operation that made them and the number of its output."""


class Term(NamedTuple):
    """The losses of all positions, of which a mask leaves some out."""

    counted: Any
    """True for each position with a weight."""
    target: Any
    """The targets of all positions; None if they are known only for those that count."""
    chosen: Any
    """The targets of the positions that count, in order."""
    rows: tuple[int, int] | None
    """Rows and positions, if the losses are in one dimension."""
    node: Any
    """Operation of the loss of each position."""
    exact: bool
    """False for targets that are computed from an error, up to rounding."""


class Unknown(Exception):
    """A part of the tape is not understood."""


class Terms:
    """Reads the terms of one loss.

    Args:
        torch: the module.
        results: results of models.
    """

    def __init__(self, torch: Any, results: Results) -> None:
        self._torch = torch
        self._results = results
        self.found: list[Term] = []

    def read(self, root: Any) -> list[Term]:
        """Return the terms of a loss.

        Raises:
            Unknown: not all of the tape above the losses of positions is understood.
        """
        waiting: list[tuple[Any, Any]] = [(root, None)]
        for _ in range(_MOST_NODES):
            if not waiting:
                return self.found
            waiting += self._below(*waiting.pop())
            if len(self.found) > _MOST_TERMS:
                break
        raise Unknown

    def _below(self, node: Any, kept: Any) -> list[tuple[Any, Any]]:
        """Return the operations below one, each with the positions that count in the shape of its result."""
        name, live = str(node.name()), [one for one, _ in node.next_functions if one is not None]
        if self._is_end(node, name, kept) or not live:
            return []
        if name in ("AddBackward0", "SubBackward0"):
            return [(one, self._fitting(kept, shape_of(one))) for one in live]
        if len(live) != 1:
            raise Unknown
        following, before = live[0], shape_of(live[0], next(at for one, at in node.next_functions if one is not None))
        if name == "MulBackward0":
            factor = self._plain(saved(node, "self" if node.next_functions[0][0] is None else "other"))
            if factor.dim():
                kept = self._both(kept, factor != 0, shape_of(node))
            return [(following, self._fitting(kept, before))]
        if name == "DivBackward0" and node.next_functions[0][0] is not None:
            return [(following, self._fitting(kept, before))]
        return [(following, self._through(node, name, kept, before))]

    def _through(self, node: Any, name: str, kept: Any, before: tuple[int, ...]) -> Any:
        """Return the positions that count before an operation with one input."""
        if name in _SAME:
            return kept
        if name in _SUMS:
            return None
        if name in _SUMS_OVER:
            if kept is None:
                return None
            if not node._saved_keepdim:
                for dim in sorted(signed(int(dim)) % len(before) for dim in node._saved_dim):
                    kept = kept.unsqueeze(dim)
            return kept.expand(before)
        if name == "WhereBackward0" or name == "MaskedFillBackward0":
            where = name == "WhereBackward0"
            mask = self._booleans(saved(node, "condition" if where else "mask"))
            keeps = mask if where and node.next_functions[0][0] is not None else ~mask
            return self._fitting(self._both(kept, keeps, shape_of(node)), before)
        if name in ("IndexBackward0", "MaskedSelectBackward0"):
            mask = self._selecting(node, name, before)
            if kept is not None and not bool(kept.all()):
                raise Unknown
            return mask
        if kept is None:
            if name in _VIEWS or name in ("TransposeBackward0", "PermuteBackward0", "TBackward0"):
                return None
            kept = self._torch.ones((), dtype=self._torch.bool)
        if name in _VIEWS:
            return kept.reshape(before)
        if name == "TransposeBackward0":
            return kept.transpose(signed(node._saved_dim0), signed(node._saved_dim1))
        if name == "TBackward0":
            return kept.t()
        if name == "SliceBackward0":
            whole = self._torch.zeros(before, dtype=self._torch.bool)
            _sliced(node, whole, before)[...] = kept
            return whole
        raise Unknown

    def _is_end(self, node: Any, name: str, kept: Any) -> bool:
        """Add the term of an operation that is a loss of each position; return False for others."""
        if name in (*_CLASSES, *_ERRORS, *_BINARY):
            target = self._plain(saved(node, "target"))
            target = target.squeeze(1) if target.dim() == 3 and target.shape[1] == 1 else target
            counted = self._torch.ones(target.shape, dtype=self._torch.bool)
            if kept is not None:
                counted = counted & kept.reshape(target.shape)
            if name in _CLASSES:
                counted = counted & (target != node._saved_ignore_index)
            self._add(node, counted, target, exact=True)
            return True
        if name == "GatherBackward0":
            index, shape = self._plain(saved(node, "index")), shape_of(node)
            if shape and shape[signed(int(node._saved_dim)) % len(shape)] == 1:
                dim = signed(int(node._saved_dim)) % len(shape)
                target = index.squeeze(dim)
                counted = self._torch.ones(shape, dtype=self._torch.bool) if kept is None else kept
                self._add(node, counted.squeeze(dim), target, exact=True)
                return True
            raise Unknown
        squared = name == "MulBackward0" and node.next_functions[0][0] is node.next_functions[1][0] is not None
        if name not in _SIZES and not squared:
            return False
        self._error(node, kept)
        return True

    def _error(self, node: Any, kept: Any) -> None:
        """Add the term of a square, or an absolute value, of the difference of a result and a target."""
        errors = self._plain(saved(node, "self"))
        if not errors.dim():
            raise Unknown
        counted = self._torch.ones(errors.shape, dtype=self._torch.bool) if kept is None else kept
        below, whole = node.next_functions[0][0], True
        for _ in range(_MOST_BETWEEN):
            name, live = str(below.name()), [one for one, _ in below.next_functions if one is not None]
            if name == _LEAF:
                return  # the penalty of a weight
            if name in ("SubBackward0", "RsubBackward0"):
                break
            if name == "MulBackward0" and len(live) == 1:
                factor = self._plain(saved(below, "self" if below.next_functions[0][0] is None else "other"))
                if not bool(((factor == 0) | (factor == 1)).all()):
                    raise Unknown
                counted, whole = self._both(counted, factor != 0, shape_of(below)), False
                counted = self._fitting(counted, shape_of(live[0]))
            elif name in _VIEWS and len(live) == 1:
                counted, errors = counted.reshape(shape_of(live[0])), errors.reshape(shape_of(live[0]))
            elif name == "IndexBackward0" and len(live) == 1 and bool(counted.all()):
                counted, whole = self._selecting(below, name, shape_of(live[0])), False
            else:
                raise Unknown
            below = live[0]
        else:
            raise Unknown
        live = [one for one, _ in below.next_functions if one is not None]
        if len(live) != 1 or getattr(below, "_saved_alpha", 1) != 1:
            raise Unknown
        at = next(at for one, at in below.next_functions if one is not None)
        chosen = None
        result, mask = self._result(live[0], at)
        if tuple(result.shape) != shape_of(below):
            raise Unknown
        # Errors behind a mask are zero, or left out, where it covers them.
        sign = 1.0 if below.next_functions[0][0] is not None and str(below.name()) == "SubBackward0" else -1.0
        if whole and mask is None:
            target = result - sign * errors
            self._add(node, counted, target, exact=False)
            return
        if mask is not None:
            if not bool(counted.all()) or not whole:
                raise Unknown
            counted, chosen = mask, (result - sign * errors).reshape(-1)
        elif errors.shape == counted.shape:
            chosen = (result - sign * errors)[counted]
        else:
            chosen = result[counted] - sign * errors.reshape(-1)
        self.found.append(Term(counted, None, chosen, None, node, exact=False))

    def _add(self, node: Any, counted: Any, target: Any, *, exact: bool) -> None:
        """Add a term, also one with scores, or results, that were selected before the loss."""
        if not 1 < counted.numel() <= _LARGEST:
            raise Unknown
        rows, below = None, node
        for _ in range(_MOST_BETWEEN):
            live = [one for one, _ in below.next_functions if one is not None]
            if len(live) != 1:
                break
            below, name = live[0], str(live[0].name())
            shape = shape_of(below)
            if name in ("IndexBackward0", "MaskedSelectBackward0") and len(live[0].next_functions) >= 1:
                inner = [one for one, _ in below.next_functions if one is not None]
                mask = self._selecting(below, name, shape_of(inner[0])) if len(inner) == 1 else None
                if mask is None or not bool(counted.all()):
                    raise Unknown
                if mask.dim() > 1 and int(mask.sum()) != target.numel():
                    mask = mask[..., 0]
                if int(mask.sum()) != target.numel():
                    raise Unknown
                self.found.append(Term(mask, None, target.reshape(-1), None, node, exact=exact))
                return
            if rows is None and target.dim() == 1 and len(shape) >= 2 and shape[0] * shape[1] == len(target):
                rows = (shape[0], shape[1]) if len(shape) == 3 else None
            if name not in _VIEWS and name not in ("LogSoftmaxBackward0", "TransposeBackward0", "PermuteBackward0"):
                break
        self.found.append(Term(counted, target, target[counted], rows, node, exact=exact))

    def _result(self, node: Any, at: int) -> tuple[Any, Any]:
        """Return a result of a model behind views and selections of it, and the mask of a selection."""
        path: list[Any] = []
        for _ in range(_MOST_BETWEEN):
            found = self._results.get(((int(node._sequence_nr()), str(node.name())), at))
            if found is not None:
                break
            live = [(one, place) for one, place in node.next_functions if one is not None]
            if len(live) != 1:
                raise Unknown
            path.insert(0, node)
            node, at = live[0]
        else:
            raise Unknown
        mask = None
        for one in path:
            name, before = str(one.name()), tuple(found.shape)
            if mask is not None and name not in _VIEWS:
                raise Unknown
            if name in _VIEWS:
                found = found.reshape(shape_of(one))
            elif name == "TransposeBackward0":
                found = found.transpose(signed(one._saved_dim0), signed(one._saved_dim1))
            elif name == "SliceBackward0":
                found = _sliced(one, found, before)
            elif name == "SelectBackward0":
                found = found.select(signed(int(one._saved_dim)), signed(int(one._saved_index)))
            elif name == "IndexBackward0":
                mask = self._selecting(one, name, before)
                found = found[mask].reshape(shape_of(one))
            else:
                raise Unknown
        return found, mask

    def _selecting(self, node: Any, name: str, before: tuple[int, ...]) -> Any:
        """Return the mask of a selection, in the shape of the values that it selects from."""
        if name == "MaskedSelectBackward0":
            mask = self._booleans(saved(node, "mask"))
            return self._fitting(mask.expand(before) if mask.dim() <= len(before) else mask, before)
        indices: Any = saved(node, "indices") or ()
        given = [one for one in indices if one is not None]
        if len(given) != 1 or indices[0] is None:
            raise Unknown
        mask = self._booleans(given[0])
        if tuple(mask.shape) != before[: mask.dim()]:
            raise Unknown
        return mask.reshape(*mask.shape, *[1] * (len(before) - mask.dim())).expand(before)

    def _both(self, kept: Any, mask: Any, shape: tuple[int, ...]) -> Any:
        mask = self._fitting(mask.expand(shape) if mask.dim() <= len(shape) else mask, shape)
        return mask if kept is None else kept & mask

    def _fitting(self, kept: Any, shape: tuple[int, ...]) -> Any:
        """Return positions that count, if they have a shape.

        Raises:
            Unknown: they were broadcast.
        """
        if kept is not None and tuple(kept.shape) != shape:
            raise Unknown
        return kept

    def _plain(self, value: Any) -> Any:
        if type(value) is not self._torch.Tensor or not has_values(value) or value.numel() > _LARGEST:
            raise Unknown
        if value.is_complex() or value.is_quantized:
            raise Unknown
        return value.detach().cpu()

    def _booleans(self, value: Any) -> Any:
        value = self._plain(value)
        if value.dtype is not self._torch.bool:
            raise Unknown
        return value


def _sliced(node: Any, value: Any, shape: tuple[int, ...]) -> Any:
    """Return the part of a value that a slice takes."""
    dim = signed(int(node._saved_dim)) % len(shape)
    ends = (int(one) for one in (node._saved_start, node._saved_end))
    begin, end = (one - (1 << 64) if one >= 1 << 63 else one for one in ends)
    places = range(shape[dim])[begin:end]
    if int(node._saved_step) != 1 or not len(places) or math.prod(shape) > _LARGEST:
        raise Unknown
    return value.narrow(dim, places.start, len(places))
