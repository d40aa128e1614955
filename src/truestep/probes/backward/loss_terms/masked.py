"""Weights that a softmax gives to scores with a mask: on the tape, with the values that its operations have saved.

A mask leaves a position out if its score is minus infinity, or far below the others. A score of zero is one among
others: the softmax gives it a weight.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from truestep.events import MaskedScoresRead, Site
from truestep.probes.backward.origin import RESHAPING, shape_of
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, saved

_SOFTMAX, _LOG_SOFTMAX = "SoftmaxBackward0", "LogSoftmaxBackward0"
_FILL, _WHERE, _PRODUCT = "MaskedFillBackward0", "WhereBackward0", "MulBackward0"
_FORMS = {_FILL: "fill", _WHERE: "where", _PRODUCT: "product"}
_SCALINGS = ("DivBackward0", "MulBackward0")
_DROPOUT = "NativeDropoutBackward0"
_MOST_NODES = 5_000
_MOST_SOFTMAXES = 4
_MOST_READS = 3
"""Reads of the losses of a line."""
_MOST_LINES = 32
_MOST_BETWEEN = 6
_MOST_VALUES = 1 << 20
_LEAST_MASKED = 2
"""Masked positions of some row; a single one is the diagonal of a table of pairs, or a special token."""


class _Mask(NamedTuple):
    """Positions of the scores of a softmax that a mask has changed."""

    masked: Any
    form: str


class MaskedScores:
    """Reads the softmaxes of masked scores on the tapes of the first losses of each line."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._reads: dict[Site | None, int] = {}

    def look(self, root: Any, site: Site | None) -> None:
        """Emit the softmax of a loss that gives masked positions the largest weight."""
        number = self._reads.get(site, 0)
        if root is None or number >= _MOST_READS or len(self._reads) >= _MOST_LINES:
            return
        self._reads[site] = number + 1
        found = [read for read in map(self._read, _softmaxes(root)) if read is not None]
        if found:
            share, form, log = max(found)
            files = tuple(self.scene.sites.own_files()) if share else ()
            self.scene.emit(MaskedScoresRead(site=site, share=share, form=form, log=log, files=files))

    def _read(self, one: tuple[Any, list[Any]]) -> tuple[float, str, bool] | None:
        """Return the mean weight of the masked positions of a row, the form of the mask, and if it is of logarithms."""
        torch, (node, users) = self.scene.torch, one
        log = str(node.name()) == _LOG_SOFTMAX
        shares = saved(node, "result")
        mask = None if shares is None or type(shares) is not torch.Tensor else self._mask(node)
        if mask is None or not has_values(shares):
            return None
        with torch.no_grad():
            masked = _expanded(mask.masked, shares.shape)
            along = _signed(int(node._saved_dim)) % max(1, shares.dim())
            if masked is None or self._is_masked_again(users, masked):
                return None
            shares, masked = _few(shares.detach(), along), _few(masked, along)
            shares = shares.exp() if log else shares
            rows = masked.any(along) & ~masked.all(along)
            if not bool(rows.any()) or int(masked.sum(along)[rows].max()) < _LEAST_MASKED:
                return None
            weight = float((shares * masked).sum(along)[rows].mean())
            largest = shares.masked_fill(~masked, 0.0).amax(along)
            least = shares.masked_fill(masked, 1.0).amin(along)
            # A limit from below, as of a ReLU, leaves larger scores alone: it does not mask.
            return None if weight > 0 and bool((least >= largest)[rows].all()) else (weight, mask.form, log)

    def _mask(self, node: Any) -> _Mask | None:
        """Return the mask right before a softmax, also if its scores were scaled or reshaped behind it."""
        for _ in range(_MOST_BETWEEN):
            before = node.next_functions[0][0]
            if before is None:
                return None
            name = str(before.name())
            if name in _FORMS:
                masked = self._masked(before, name)
                if masked is not None:
                    return _Mask(masked, _FORMS[name])
            if name not in RESHAPING and not (name in _SCALINGS and None in [one for one, _ in before.next_functions]):
                return None
            if shape_of(before) != shape_of(node) or name.startswith(("Transpose", "Permute", "TBackward")):
                return None
            node = before
        return None

    def _masked(self, node: Any, name: str) -> Any:
        """Return the positions that an operation replaces by a constant; None for other operations."""
        torch = self.scene.torch
        if name == _FILL:
            return _of_kind(torch, saved(node, "mask"), torch.bool)
        follows = [following is not None for following, _ in node.next_functions]
        if name == _WHERE:
            kept = _of_kind(torch, saved(node, "condition"), torch.bool)
            if kept is None or follows.count(True) != 1:
                return None
            return ~kept if follows[0] else kept
        factors = [value for part in ("self", "other") if (value := saved(node, part)) is not None]
        if len(factors) != 1 or follows.count(True) != 1:
            return None
        factor = factors[0]
        if type(factor) is not torch.Tensor or not has_values(factor) or not 1 < factor.numel() <= _MOST_VALUES:
            return None
        zero = factor == 0
        return zero if bool((zero | (factor == 1)).all()) and bool(zero.any()) else None

    def _is_masked_again(self, users: list[Any], masked: Any) -> bool:
        """Return True if the weights of the masked positions are set to zero behind the softmax."""
        for user in users:
            name = str(user.name())
            again = self._masked(user, name) if name in _FORMS else None
            again = None if again is None else _expanded(again, masked.shape)
            if again is not None and bool((again | ~masked).all()):
                return True
        return False


def _softmaxes(root: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Yield the softmaxes of a tape with a gradient, nearest first, each with the operations that use its result."""
    queue, seen = deque([root]), {root}
    users: dict[Any, list[Any]] = {}
    while queue and len(seen) < _MOST_NODES:
        node = queue.popleft()
        passes = users.get(node, []) if node.name() == _DROPOUT or node.name() in RESHAPING else [node]
        for following, _ in node.next_functions:
            if following is None:
                continue
            name = following.name()
            if name in (_SOFTMAX, _LOG_SOFTMAX, _DROPOUT) or name in RESHAPING:
                users.setdefault(following, []).extend(passes)
            if following not in seen:
                seen.add(following)
                queue.append(following)
    softmaxes = (node for node in users if node.name() in (_SOFTMAX, _LOG_SOFTMAX))
    for _, node in zip(range(_MOST_SOFTMAXES), softmaxes, strict=False):
        yield node, users[node]


def _expanded(mask: Any, shape: Any) -> Any:
    """Return a mask in the shape of the weights; None if it does not fit."""
    try:
        return mask.expand(shape)
    except RuntimeError:
        return None


def _few(values: Any, along: int) -> Any:
    """Return the first rows of values, at most so many as are read."""
    for at in range(values.dim()):
        if at != along and values.numel() > _MOST_VALUES:
            each = max(1, values.numel() // values.shape[at])
            values = values.narrow(at, 0, max(1, min(values.shape[at], _MOST_VALUES // each)))
    return values


def _of_kind(torch: Any, value: Any, dtype: Any) -> Any:
    usable = type(value) is torch.Tensor and value.dtype is dtype and has_values(value)
    return value if usable else None


def _signed(dim: int) -> int:
    return dim if dim < 1 << 32 else dim - (1 << 64)
