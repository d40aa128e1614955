"""Distances of weights from kept values in a loss, as of a penalty that holds them where an earlier task left them."""

from __future__ import annotations

import gc
from typing import Any

from truestep.events import DistancesRead, Site
from truestep.probes.backward.loss_terms.terms import below
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, saved

_SIZES = ("PowBackward0", "AbsBackward0", "NormBackward", "LinalgVectorNormBackward0")
_LOSSES = ("MseLossBackward", "L1LossBackward", "SmoothL1LossBackward", "HuberLossBackward")
_DIFFERENCES = ("SubBackward0", "RsubBackward")
_LEAF = "torch::autograd::AccumulateGrad"
_THROUGH = (
    "ViewBackward",
    "ReshapeAliasBackward",
    "UnsafeViewBackward",
    "SqueezeBackward",
    "TBackward",
    "CloneBackward",
)
_MOST = 256
_LARGEST = 1 << 22


class Distances:
    """Emits `DistancesRead`.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._zero: set[Site] = set()
        """Lines with distances of zero; the steps after the first of them are read too."""

    def look(self, node: Any, site: Site | None) -> None:
        """Read the distances below an operation, of parameters from values without a gradient or from themselves."""
        if node is None or site is None:
            return
        zero: dict[int, Any] = {}
        other: list[int] = []
        for one in below([node])[0]:
            parameter = _of_distance(str(one.name()), one)
            held = None if parameter is None else self._scene.ledger.by_id.get(id(parameter))
            if held is None or len(zero) + len(other) >= _MOST:
                continue
            values = _difference(str(one.name()), one)
            if values is None or not has_values(values) or not 1 < values.numel() <= _LARGEST:
                continue
            if bool(values.any()):
                other.append(held.number)
            else:
                zero[held.number] = parameter
        live = False
        if zero and site not in self._zero:
            self._zero.add(site)
            self._scene.changed()
            live = self._is_live(min(zero.values(), key=lambda one: int(one.numel())))
        if zero or other:
            self._scene.tell(
                DistancesRead,
                site=site,
                zero=tuple(sorted(zero)),
                other=tuple(sorted(set(other) - set(zero))),
                live=live,
            )

    def _is_live(self, parameter: Any) -> bool:
        """Return True if the program holds the memory of a parameter under another name, and no copy of its values."""
        torch, live = self._scene.torch, False
        kinds, own = (torch.Tensor, torch.nn.Parameter), (parameter, parameter.grad)
        for one in gc.get_objects():
            if type(one) not in kinds or any(one is mine for mine in own) or one.shape != parameter.shape:
                continue
            if one.device != parameter.device or one.dtype != parameter.dtype or not has_values(one):
                continue
            if one.data_ptr() == parameter.data_ptr():
                live = True
            elif torch.equal(one, parameter):
                return False
        return live


def _of_distance(name: str, node: Any) -> Any:
    """Return the parameter that an operation measures the distance of; None for any other operation."""
    if name.startswith(_LOSSES):
        difference = node
    elif name.startswith(_SIZES):
        difference = node.next_functions[0][0]
        if difference is None or not str(difference.name()).startswith(_DIFFERENCES):
            return None
    else:
        return None
    sides = [_leaf(following) for following, _ in difference.next_functions if following is not None]
    if not sides or any(one is None for one in sides) or any(one is not sides[0] for one in sides):
        return None
    return sides[0]


def _leaf(node: Any) -> Any:
    """Return the parameter that a value has the numbers of; None for others."""
    while str(node.name()).startswith(_THROUGH):
        node = node.next_functions[0][0]
        if node is None:
            return None
    return node.variable if node.name() == _LEAF else None


def _difference(name: str, node: Any) -> Any:
    """Return the differences that an operation has saved; None if unknown."""
    one = saved(node, "self")
    if not name.startswith(_LOSSES):
        return one
    target = saved(node, "target")
    return None if one is None or target is None or one.shape != target.shape else one.detach() - target.detach()
