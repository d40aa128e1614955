"""Distances of weights from kept values in a loss, as of a penalty that holds them where an earlier task left them."""

from __future__ import annotations

import ast
import functools
import gc
import re
from dataclasses import dataclass
from typing import Any

from truestep import source
from truestep.events import DistancesRead, Site
from truestep.probes.backward.loss_terms.terms import below
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, saved
from truestep.seams.refs import Ref

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
_MOST_PLACES = 32
_FIRST = 64
_LARGEST = 1 << 22


class Distances:
    """Emits `DistancesRead`: of zero, and once more where a kept value has followed the weight.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._zero: set[Site] = set()
        """Lines with distances of zero."""
        self.waiting: dict[Site, _Followed] = {}
        """Of these, lines with a weight that the program holds under another name, too, until it has moved."""

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
        if zero and site not in self._zero and not any(map(_subtracts_itself, self._scene.sites.own_files())):
            self._zero.add(site)
            smallest = min(zero.values(), key=lambda one: int(one.numel()))
            followed = self._kept(smallest, tuple(sorted(zero)))
            if followed is not None:
                self.waiting[site] = followed
                self._scene.changed()
        if other:
            self.waiting.pop(site, None)  # the kept value is another one
        if zero or other:
            self._scene.tell(
                DistancesRead, site=site, zero=tuple(sorted(zero)), other=tuple(sorted(set(other) - set(zero)))
            )

    def confirm(self) -> None:
        """Emit the lines with a distance of zero from a value that has followed the weight."""
        for site, followed in list(self.waiting.items()):
            if followed.has_moved:
                del self.waiting[site]
                self._scene.tell(DistancesRead, site=site, zero=followed.zero, live=True)

    def _kept(self, parameter: Any, zero: tuple[int, ...]) -> _Followed | None:
        """Return other names of a parameter's memory; None without one, and if a copy of its values is held, too."""
        torch, found = self._scene.torch, []
        values = parameter.detach().reshape(-1)
        own = (parameter, parameter.grad, values)
        for one in gc.get_objects():
            if type(one) not in (torch.Tensor, torch.nn.Parameter) or any(one is mine for mine in own):
                continue
            if one.dtype != parameter.dtype or one.device != parameter.device or not has_values(one):
                continue
            if one.data_ptr() == parameter.data_ptr():
                found += [Ref(one)] * (one.shape == parameter.shape)
            elif values.numel() <= one.numel() <= _LARGEST and _holds(one.detach().reshape(-1), values):
                if not _is_ours(one):
                    return None
        return _Followed(Ref(parameter), found, values[:_FIRST].clone(), zero) if found else None


@dataclass(slots=True)
class _Followed:
    """A parameter, and other names of its memory."""

    parameter: Ref
    kept: list[Ref]
    first: Any
    """First values of the parameter when the distance was zero."""
    zero: tuple[int, ...]

    @property
    def has_moved(self) -> bool:
        """Return True if the weight has other values now, and a kept value has them too."""
        parameter, kept = self.parameter(), [one for ref in self.kept if (one := ref()) is not None]
        if parameter is None or all(one.data_ptr() != parameter.data_ptr() for one in kept):
            return False
        return bool((parameter.detach().reshape(-1)[: len(self.first)] != self.first).any())


@functools.lru_cache(maxsize=64)
def _subtracts_itself(path: str) -> bool:
    """Return True if a file has a difference of a variable and a value that is made of it without a gradient."""
    for node in source.walk(source.parsed(path) or ast.Module([], [])):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            names = [
                {one.id for one in ast.walk(side) if isinstance(one, ast.Name)} for side in (node.left, node.right)
            ]
            if names[0] & names[1] and re.search(r"\.(?:detach\(|data\b)", ast.unparse(node)):
                return True
    return False


def _is_ours(tensor: Any) -> bool:
    """Return True if an object of this package holds a tensor, as a value to compare later ones with."""
    return any(type(one).__module__.startswith("truestep.") for one in gc.get_referrers(tensor))


def _holds(whole: Any, values: Any) -> bool:
    """Return True if a flat tensor has values in a row somewhere."""
    places = (whole[: len(whole) - len(values) + 1] == values[0]).nonzero().flatten()[:_MOST_PLACES].tolist()
    return any(bool((whole[at : at + len(values)] == values).all()) for at in places)


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
