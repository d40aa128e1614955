"""Clipped ratios of probabilities that are always 1, although the same samples trained the weights before.

A ratio is 1 by right in the first update with new samples. Samples of earlier updates are recognised by the inputs of
the first layer, in any order and in other minibatches, and by their weights in the loss, up to a shift and a factor:
a state that returns with a new action has another weight. An update that left this layer as it was does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from truestep.events import RatiosRead, Site
from truestep.probes.backward.signs import ClippedRatio, clipped_ratio, terms_of
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, saved
from truestep.probes.forward.losses.followed_targets import kind_of, variable_of

_INPUTS = {"Addmm": (1, "mat1"), "Mm": (0, "self"), "Convolution": (0, "input"), "Embedding": (None, "indices")}
"""Layer to the place of its input among its operands, and the name under which it is saved."""
_MOST_NODES = 1 << 11
_FEW, _MANY = 8, 1 << 13
"""Least and largest number of samples."""
_MOST_CELLS = 1 << 21
_MOST_KEPT = 24
_MORE_STEPS = 16
_LEAST_SHOWN = 6
"""Least number of different weights that are equal by more than chance."""
_LEAST_SPREAD = 1e-2
_ROUNDING = 1e-6
_LEAST_APART = 0.9
"""Least share of different inputs: a few states return by chance."""
_MIXED = (-7046029254386353131, -4417276706812531889)
"""Factors of a hash."""


class _Batch(NamedTuple):
    """The samples of a loss.

    Attributes:
        rows: a hash of the input of each sample.
        weights: the weights of their ratios.
        layer: a hash of the parameters of the first layer.
    """

    rows: Any
    weights: Any
    layer: int


class Ratios:
    """Emits `RatiosRead`."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._kept: dict[Site | None, list[_Batch]] = {}
        """Line to the samples that were read; none are kept once a reading was right."""
        self._right: set[Site | None] = set()

    def look(self, node: Any, frame: FrameType | None, site: Site | None) -> bool:
        """Look at the ratios of a loss; return True if the next ones are needed, within the time for close reading.

        Args:
            node: operation that made the loss.
            frame: the user's frame that called backward; None if a library did.
            site: the line of the call.
        """
        if node is None or site in self._right:
            return False
        found = next(filter(None, (clipped_ratio(one) for one, _ in terms_of(node))), None)
        values = None if found is None else saved(found.clip, "self")
        if found is None or values is None or not has_values(values) or not _FEW <= values.numel() <= _MOST_CELLS:
            return False
        with self._scene.torch.no_grad():
            one = bool((values == 1).all())
            batch = self._batch(found) if one else None
            known = one if batch is None else self._is_known(batch, site)
        if not one or known is False:
            self._settle(site)
            return False
        if batch is not None and known:
            name, made = variable_of(self._scene, frame, [found.ratio])
            self._scene.tell(RatiosRead, site=site, made=made, name=name)
        return batch is not None and len(self._kept[site]) < _MOST_KEPT

    def _settle(self, site: Site | None) -> None:
        """Read a line no longer: its ratios are right, or its samples are drawn for each update."""
        self._right.add(site)
        self._kept.pop(site, None)
        self._scene.tell(RatiosRead, site=site, one=False)

    def _is_known(self, batch: _Batch, site: Site | None) -> bool | None:
        """Return True if the samples trained other weights before, False for others; None if it is not known."""
        kept = self._kept.setdefault(site, [])
        if len(kept) == 1:
            self._scene.sampling.follow_closely(_MORE_STEPS)
        shown = 0
        for earlier in kept:
            if earlier.layer != batch.layer:
                values = _values_alike(self._scene.torch, earlier, batch)
                if values is None:
                    return False
                shown += max(0, values - 2)  # any two values are alike up to a shift and a factor
        if len(kept) < _MOST_KEPT:
            kept.append(batch)
        return True if shown >= _LEAST_SHOWN else None

    def _batch(self, found: ClippedRatio) -> _Batch | None:
        """Return the samples of a loss; None if their inputs do not differ, or are unknown."""
        product = found.product
        known = 1 if product.next_functions[0][0] is not None else 0
        weights = saved(product, ("self", "other")[known])
        if weights is None or not has_values(weights) or not weights.is_floating_point():
            return None
        if weights.dim() > 1 and bool((weights == weights[:, :1]).all()):
            weights = weights[:, 0]  # one for each sequence
        weights = weights.detach().reshape(-1)
        if not _FEW <= weights.numel() <= _MANY:
            return None
        for values, layer in _first_layers(found.ratio):
            rows = _hashes(self._scene.torch, values, int(weights.numel()))
            if rows is not None and len(rows.unique()) >= _LEAST_APART * len(rows):
                key = _hashes(self._scene.torch, layer.detach().reshape(1, -1), 1)
                return None if key is None else _Batch(rows.cpu(), weights.double().cpu(), int(key))
        return None


def _first_layers(root: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the inputs without a gradient of layers, and a parameter of the layer."""
    seen, queue = {root}, [root]
    while queue and len(seen) < _MOST_NODES:
        node = queue.pop(0)
        place, name = _INPUTS.get(kind_of(node), (None, ""))
        inner = [following for following, _ in node.next_functions]
        if name and (place is None or inner[place] is None) and (values := saved(node, name)) is not None:
            leaves = [one if hasattr(one, "variable") else _leaf(one) for one in inner if one is not None]
            wide = [leaf.variable for leaf in leaves if leaf is not None and leaf.variable.dim() > 1]
            if wide and has_values(values) and has_values(wide[0]) and values.numel() <= _MOST_CELLS:
                yield values.detach(), wide[0]
        new = [one for one in inner if one is not None and one not in seen]
        seen.update(new)
        queue += new


def _leaf(node: Any) -> Any:
    """Return the leaf that a view such as a transpose is of; None for other operations."""
    following = node.next_functions[0][0] if node.next_functions else None
    return following if following is not None and hasattr(following, "variable") else None


def _hashes(torch: Any, values: Any, count: int) -> Any:
    """Return a hash of each of a number of rows; None if the values have not that many."""
    if not values.numel() or values.numel() % count or values.is_complex():
        return None
    rows = values.reshape(count, -1)
    if rows.is_floating_point():
        rows = rows.double().contiguous().view(torch.int64)  # the bits of each number
    factors = torch.arange(1, rows.shape[1] + 1, device=rows.device) * _MIXED[0]
    factors = (factors ^ (factors >> 29)) * _MIXED[1]
    rows = rows.long()
    return ((rows ^ (rows >> 31)) * (factors | 1)).sum(1)


def _values_alike(torch: Any, earlier: _Batch, now: _Batch) -> int | None:
    """Return the number of different weights of the samples that two batches share; None if these weights differ."""
    rows, order = earlier.rows.sort()
    places = torch.searchsorted(rows, now.rows).clamp(max=len(rows) - 1)
    common = rows[places] == now.rows
    one, other = earlier.weights[order[places[common]]], now.weights[common]
    if min(len(one.unique()), len(other.unique())) < 2 or min(map(_spread, (one, other))) < _LEAST_SPREAD:
        return 0
    values = len(one.unique())
    one, other = one - one.mean(), other - other.mean()
    return values if float(one @ other) >= (1.0 - _ROUNDING) * float(one.norm() * other.norm()) else None


def _spread(values: Any) -> float:
    """Return the distance of the largest from the least value, in units of the size of the largest."""
    return float((values.max() - values.min()) / values.abs().max().clamp(min=1e-30))
