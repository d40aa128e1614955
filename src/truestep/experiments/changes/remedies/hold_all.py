"""The remedy for parameters that the optimizer does not hold: add them at their first gradient."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.optimizers import built, depths_of, parameters_of
from truestep.rules._parts import apart
from truestep.seams.refs import tensor_keys

_MOST_SCANS = 20
"""Most searches for the model of unheld parameters: a script may create new ones in every step."""
_NO_FORWARD = ("torch.nn.modules.module", "lightning.", "pytorch_lightning.")
"""Packages with a `forward` for modules that only hold parts of a training, and do not run them as one model."""
_BEHIND = 3
"""Operations between a left-out parameter and a trained one behind it, seen from the loss: a layer, an activation."""


class HoldAll(Change):
    """Parameters of a model that get gradients join the optimizer of the rest of the model, in the nearest group.

    Three cases are checked at the first backward pass that reaches such a parameter: layers in a list, tuple or dict of
    a module, which are registered too; parameters like unused ones in the optimizer, because a part of the model or all
    of it was replaced; and a smaller part of the model with trained parameters behind it. Parameters that are frozen,
    in eval mode, without gradients, or in a separate model (a teacher, a perceptual loss) stay out.
    """

    name = "hold-all"
    remedies = ("parameters-not-optimized", "optimizer-holds-stale-parameters", "layers-in-plain-container")

    def install(self, stack: ExitStack) -> None:
        self._built = built(stack)
        self._scans = 0
        self._judged: Any = tensor_keys()
        """Parameters outside of optimizers that stay outside."""
        self._waiting: list[Any] = []
        """Parameters of backward passes that reached no parameter of an optimizer."""
        self._depths: dict[Any, int] = {}
        seams.backward.watch(stack, before=self._measure, after=self._passed)
        seams.step.watch(stack, before=self._steps)

    def _measure(self, this: seams.backward.Pass) -> None:
        self._depths = depths_of(this.roots)

    def _passed(self, this: seams.backward.Pass) -> None:
        depths, self._depths = self._depths, {}
        self._look({leaf: depth for leaf, depth in depths.items() if leaf.grad is not None})

    def _look(self, depths: dict[Any, int]) -> None:
        """Examine the parameters that a backward pass reached."""
        import torch

        holder = {id(p): optimizer for optimizer in list(self._built) for p in parameters_of(optimizer)}
        left = [
            leaf
            for leaf in depths
            if isinstance(leaf, torch.nn.Parameter) and id(leaf) not in holder and leaf not in self._judged
        ]
        trained = [leaf for leaf in depths if id(leaf) in holder]
        self._waiting = [] if trained else left
        if not left or not trained or self._scans >= _MOST_SCANS:
            return
        self._scans += 1
        for home in _homes(trained):
            inside = {id(p) for p in home.parameters()}
            mine = [p for p in trained if id(p) in inside]
            optimizer = Counter(holder[id(p)] for p in mine).most_common(1)[0][0]
            for owner, name, layers in _hidden(home):
                found = [p for layer in layers for p in layer.parameters() if _is_in(p, left)]
                if found and all(layer.training for layer in layers):
                    owner._modules.setdefault(name, torch.nn.ModuleList(layers))
                    self._hold(optimizer, found, depths, mine)
            missing = [p for p in left if id(p) in inside]
            if missing and (_is_stale(optimizer, missing, depths, inside) or _is_left(home, missing, mine, depths)):
                self._hold(optimizer, missing, depths, mine)
        for leaf in left:
            self._judged[leaf] = True

    def _hold(self, optimizer: Any, parameters: list[Any], depths: dict[Any, int], beside: list[Any]) -> None:
        """Add parameters to the groups of their nearest neighbors in the graph."""
        import torch

        if isinstance(optimizer, torch.optim.Adagrad):  # it creates its state in its constructor
            return
        groups = {id(p): group for group in optimizer.param_groups for p in group["params"]}
        near = [p for p in beside if id(p) in groups]
        for parameter in parameters:
            if id(parameter) not in groups:
                nearest = min(near, key=lambda p: abs(depths[p] - depths[parameter]))
                groups[id(nearest)]["params"].append(parameter)
                groups[id(parameter)] = groups[id(nearest)]
                self.applied += 1

    def _steps(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Add the whole waiting model if an optimizer without gradients holds parameters that match one by one."""
        waiting, self._waiting = self._waiting, []
        held = list(parameters_of(optimizer))
        if not waiting or len(optimizer.param_groups) != 1 or any(p.grad is not None and p.grad.any() for p in held):
            return
        if sorted(tuple(p.shape) for p in waiting) == sorted(tuple(p.shape) for p in held):
            optimizer.param_groups[0]["params"].extend(waiting)
            self.applied += len(waiting)


def _is_in(tensor: Any, tensors: list[Any]) -> bool:
    return any(tensor is other for other in tensors)


def _homes(parameters: list[Any]) -> list[Any]:
    """Return the outermost modules with a forward that hold any of these parameters."""
    import torch

    containers = (torch.nn.ModuleList, torch.nn.ModuleDict)
    wanted = {id(p) for p in parameters}
    modules = [thing for thing in gc.get_objects() if issubclass(type(thing), torch.nn.Module)]
    modules = [module for module in modules if "_modules" in vars(module)]
    inner = {id(child) for module in modules for child in module.children()}
    inner |= {id(layer) for module in modules for _, _, layers in _contained(module) for layer in layers}
    found = []
    waiting = [module for module in modules if id(module) not in inner]
    while waiting:
        module = waiting.pop()
        defined_in = getattr(type(module).forward, "__module__", None) or ""
        if "forward" in vars(module) or not (defined_in.startswith(_NO_FORWARD) or isinstance(module, containers)):
            found.append(module)
        else:
            waiting.extend(module.children())
    return [module for module in found if any(id(p) in wanted for p in module.parameters())]


def _hidden(home: Any) -> list[tuple[Any, str, list[Any]]]:
    """Return the layers in plain containers of a model: owner, attribute, parameters or layers."""
    return [found for module in home.modules() for found in _contained(module)]


def _contained(module: Any) -> Iterator[tuple[Any, str, list[Any]]]:
    import torch

    for name, value in vars(module).items():
        if name.startswith("_") or not isinstance(value, list | tuple | dict):
            continue
        values = list(value.values()) if isinstance(value, dict) else list(value)
        layers = [layer for layer in values if issubclass(type(layer), torch.nn.Module)]
        if layers:
            yield module, name, layers


def _is_stale(optimizer: Any, missing: list[Any], depths: dict[Any, int], inside: set[int]) -> bool:
    """Return True if the optimizer holds parameters that left the model and match the missing ones."""
    reached = {id(p) for p in depths}
    stale = [p for p in parameters_of(optimizer) if id(p) not in inside and id(p) not in reached]
    return any(_is_alike(new, old) for new in missing for old in stale)


def _is_alike(new: Any, old: Any) -> bool:
    return bool(new.shape == old.shape or (new.dim() > 1 and new.shape[1:] == old.shape[1:]))


def _is_left(home: Any, missing: list[Any], trained: list[Any], depths: dict[Any, int]) -> bool:
    """Return True if the missing part is the smaller one, in training, with trained parameters behind it."""
    behind = max(depths[p] for p in trained) - min(depths[p] for p in missing)
    if len(missing) > len(trained) or behind < _BEHIND:
        return False
    ids = {id(p) for p in missing}
    if not all(module.training for module in home.modules() for p in module.parameters(recurse=False) if id(p) in ids):
        return False
    names = {id(p): name for name, p in home.named_parameters()}
    sizes = [sum(p.numel() for p in part) for part in (missing, trained)]
    return sizes[0] < sizes[1] or apart([names[id(p)] for p in missing], [names[id(p)] for p in trained])
