"""Weights that a softmax gives to scores with a mask: on the tape, with the values that its operations have saved.

A mask leaves a position out if its score is minus infinity, or far below the others. A score of zero is one among
others: the softmax gives it a weight.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from truestep.events import MaskedScoresRead, Site
from truestep.probes.backward.chained_layers import DROPOUT
from truestep.probes.backward.loss_terms.mask_forms import (
    EXP,
    FORMS,
    PRODUCT,
    VIEWS,
    carried,
    expanded,
    is_zero_behind,
    masked_by,
    signed,
)
from truestep.probes.backward.loss_terms.mask_signs import fingerprint, is_at_random, is_by_value
from truestep.probes.backward.origin import shape_of
from truestep.probes.context.sampling import FirstReads
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, saved

_SOFTMAX, _LOG_SOFTMAX = "SoftmaxBackward0", "LogSoftmaxBackward0"
_SCALINGS = ("DivBackward0", PRODUCT)
_AFTER = ("NativeDropoutBackward0", "AddBackward0", "DivBackward0", EXP)
"""Operations that leave each weight where it is: dropout, a small number that is added, a quotient with a sum, and
an exponential of logarithms.
"""
_MOST_NODES = 5_000
_MOST_SOFTMAXES = 4
_MOST_BETWEEN = 8
_MOST_VALUES = 1 << 20
_LEAST_RANK = 3
_FEW_VALUES = 4096
_LITTLE = 0.01
_LEAST_MASKED = 1.5
"""Masked positions of a row with some, on average; single ones are the diagonal of a table of pairs, or special
tokens."""


class _Mask(NamedTuple):
    """Positions of the scores of a softmax that a mask has changed."""

    own: Any
    """In the shape of the mask."""
    masked: Any
    """In that of the softmax."""
    form: str


class Softmax(NamedTuple):
    """A softmax of a tape, with the operations that use values, by the operation that made these."""

    node: Any
    users: dict[Any, list[tuple[Any, int]]]


class _Read(NamedTuple):
    """The weight of the masked positions of a softmax, and their mask."""

    chosen: bool
    """Whether the mask does not look like one of a dropout."""
    share: float
    """Mean weight of the masked positions of a row."""
    form: str
    log: bool
    queries: bool = False
    """Whether the mask covers queries, all scores of each, and no keys."""


class MaskedScores:
    """Reads the softmaxes of masked scores on the tapes of the first losses of each line."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._reads = FirstReads()
        self._met: dict[Site | None, set[tuple[int, ...]]] = {}
        """Masks without a structure of each line; those of a dropout do not come again."""

    def look(self, root: Any, site: Site | None) -> None:
        """Emit the softmax of a loss that gives masked positions the largest weight."""
        if root is None or not self._reads.is_next(site):
            return
        met = self._met.setdefault(site, set())
        found = [read for one in softmaxes(root) if (read := self._read(one, met)) is not None]
        if found:
            most = max(found, key=lambda read: (read.chosen and read.share > _LITTLE, read.share))
            self.scene.emit(
                MaskedScoresRead(
                    site=site,
                    share=most.share,
                    form=most.form,
                    log=most.log,
                    queries=most.queries,
                    at_random=not most.chosen,
                    files=tuple(self.scene.sites.own_files()) if most.share else (),
                )
            )

    def _read(self, one: Softmax, met: set[tuple[int, ...]]) -> _Read | None:
        """Return the weight that a softmax gives to masked positions."""
        torch, node = self.scene.torch, one.node
        log = str(node.name()) == _LOG_SOFTMAX
        shares = saved(node, "result")
        mask = None if shares is None or type(shares) is not torch.Tensor else self._mask(node)
        if mask is None or not has_values(shares) or mask.masked.shape != shares.shape:
            return None
        with torch.no_grad():
            if any(is_zero_behind(torch, user, at, mask.masked, path, log=log) for user, at, path in uses(one)):
                return None
            along = signed(int(node._saved_dim)) % max(1, shares.dim())
            shares, masked = _few(shares.detach(), along), _few(mask.masked, along)
            shares = shares.exp() if log else shares
            whole = _of_queries(shares, masked, along)
            if whole > 0 and not log:
                keys = mask.masked.transpose(-1, -2)
                covered = any(is_zero_behind(torch, user, at, keys, path, log=log) for user, at, path in uses(one))
                return None if covered else _Read(True, whole, mask.form, log, queries=True)
            rows = masked.any(along) & ~masked.all(along)
            if not bool(rows.any()) or float(masked.sum(along)[rows].float().mean()) < _LEAST_MASKED:
                return None
            weight = float((shares * masked).sum(along)[rows].mean())
            if not weight > 0:
                return None if math.isnan(weight) else _Read(True, 0.0, mask.form, log)
            if is_by_value(shares, masked, rows, along, zero=mask.form == "product"):
                return None
            return _Read(not self._is_new_at_random(mask.own, met), weight, mask.form, log)

    def _is_new_at_random(self, mask: Any, met: set[tuple[int, ...]]) -> bool:
        """Return True if a mask looks like one of a dropout, and did not come before."""
        if not is_at_random(mask):
            return False
        count = len(met)
        met.add(fingerprint(mask))
        return len(met) > count

    def _mask(self, node: Any) -> _Mask | None:
        """Return the mask right before a softmax, also if its scores were scaled or reshaped behind it."""
        path: list[Any] = []
        for _ in range(_MOST_BETWEEN):
            follows = [following for following, _ in node.next_functions if following is not None]
            if len(follows) != 1:
                return None
            node = follows[0]
            name = str(node.name())
            own = masked_by(self.scene.torch, node) if name in FORMS else None
            if own is not None:
                masked = expanded(own, shape_of(node))
                masked = None if masked is None else carried(masked, path)
                return None if masked is None else _Mask(own, masked, FORMS[name])
            if name not in VIEWS and name not in _SCALINGS:
                return None
            path.insert(0, node)
        return None


def softmaxes(root: Any) -> Iterator[Softmax]:
    """Yield the softmaxes of a tape with a gradient, nearest first."""
    queue, seen = deque([root]), {root}
    users: dict[Any, list[tuple[Any, int]]] = {}
    while queue and len(seen) < _MOST_NODES:
        node = queue.popleft()
        for at, (following, _) in enumerate(node.next_functions):
            if following is None:
                continue
            name = following.name()
            if name in (_SOFTMAX, _LOG_SOFTMAX) or name in VIEWS or name in _AFTER or name == PRODUCT:
                users.setdefault(following, []).append((node, at))
            if following not in seen:
                seen.add(following)
                queue.append(following)
    nodes = (node for node in users if node.name() in (_SOFTMAX, _LOG_SOFTMAX))
    for _, node in zip(range(_MOST_SOFTMAXES), nodes, strict=False):
        yield Softmax(node, users)


def uses(one: Softmax) -> Iterator[tuple[Any, int, tuple[Any, ...]]]:
    """Yield the operations that use the weights of a softmax, each with its input, and the path from the softmax."""
    queue: deque[tuple[Any, tuple[Any, ...]]] = deque([(one.node, ())])
    for _ in range(1 << _MOST_BETWEEN):
        if not queue:
            return
        node, path = queue.popleft()
        for user, at in one.users.get(node, ()):
            yield user, at, path
            name = str(user.name())
            if (name in VIEWS or (name in _AFTER and at == 0) or is_dropout(user)) and len(path) < _MOST_BETWEEN:
                queue.append((user, (*path, user)))


def _of_queries(shares: Any, masked: Any, along: int) -> float:
    """Return the weight that other queries give to the positions of masked ones, if the mask covers no keys; else 0.

    Args:
        shares: weights of attention between the positions of one sequence, (..., positions, positions).
        masked: the masked ones.
        along: dimension of the keys, the last one.
    """
    if along != shares.dim() - 1 or shares.dim() < _LEAST_RANK or shares.shape[-1] != shares.shape[-2]:
        return 0.0
    rows = masked[..., 0]
    if not bool(rows.any()) or bool((masked != rows.unsqueeze(-1)).any()):
        return 0.0
    some = rows.any(-1) & ~rows.all(-1)
    others = ~rows & some.unsqueeze(-1)
    if not bool(others.any()) or not bool((shares[others] > 0).all()):
        return 0.0  # another mask covers keys
    return float((shares * rows.unsqueeze(-2)).sum(-1)[others].mean())


def is_dropout(node: Any) -> bool:
    """Return True for the operation of a dropout: on the CPU, a product with zeros and one number above one."""
    name = node.name()
    if name != PRODUCT:
        return bool(name == "NativeDropoutBackward0")
    if DROPOUT in node.metadata:
        return True
    factor = saved(node, "other") if len(node.next_functions) > 1 and node.next_functions[1][0] is None else None
    if factor is None or not factor.dim() or not has_values(factor):
        return False
    few = factor.reshape(-1)[:_FEW_VALUES]
    kept = few[few != 0]
    return bool(kept.numel() and kept[0] > 1 and (kept == kept[0]).all())


def _few(values: Any, along: int) -> Any:
    """Return the first rows of values, at most so many as are read."""
    for at in range(values.dim()):
        if at != along and values.numel() > _MOST_VALUES:
            each = max(1, values.numel() // values.shape[at])
            values = values.narrow(at, 0, max(1, min(values.shape[at], _MOST_VALUES // each)))
    return values
