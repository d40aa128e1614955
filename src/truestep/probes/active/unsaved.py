"""Check: tensors in plain attributes that training changes and results depend on, but that are not in a state dict.

The value of such an attribute at the first call of its model is copied. At an evaluation, a copy of the model is used
to check that `forward` writes the attribute in train mode but not in eval mode, and that results differ with the first
value. At a save, the saved objects are searched for the attribute.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from truestep.probes.active.trial import Trial
from truestep.probes.context.scene import Scene
from truestep.probes.copies.call import Call
from truestep.probes.copies.objects import Refused, copy_of

_MOST_TENSORS = 64
_MOST_LOOKS = 16
_LARGEST = 1 << 20
_MOST_ITEMS = 20_000
_DEEP = 5
_OF_SPREAD = 0.1
_SEED = 7_654_321
_OWN_WAYS = (
    "state_dict", "load_state_dict", "_save_to_state_dict", "_load_from_state_dict", "get_extra_state",
    "set_extra_state", "train", "eval", "__setattr__", "__getattr__",
)  # fmt: skip
_HOOKS = ("_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")


@dataclass(slots=True)
class First:
    """A tensor in a plain attribute, with its value at the first call of its model."""

    owner: weakref.ref[Any]
    name: str
    value: Any

    def now(self) -> Any:
        """Return the current tensor; None if it has the first value, or if it is not a tensor of the same shape."""
        owner = self.owner()
        now: Any = None if owner is None else vars(owner).get(self.name)
        if type(now) is not type(self.value) or now.shape != self.value.shape or now.dtype != self.value.dtype:
            return None
        same = now.device != self.value.device or bool((now.detach() == self.value).all())
        return None if same else now


class Unsaved:
    """Tracks tensors in plain attributes."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._models: dict[int, tuple[weakref.ref[Any], list[First]]] = {}
        self._kept = 0
        self._looks: dict[int, set[int]] = {}
        """Model to the steps in which an evaluation compared its tensors."""

    def met(self, module: Any, model: int) -> None:
        """Copy the tensors in plain attributes of a model, at its first call."""
        if model in self._models:
            return
        firsts = []
        for part in module.modules():
            for name, value in vars(part).items():
                if self._kept < _MOST_TENSORS and self._fits(value):
                    firsts.append(First(weakref.ref(part), name, value.detach().clone()))
                    self._kept += 1
        if firsts:
            self._models[model] = weakref.ref(module), firsts

    def _fits(self, value: Any) -> bool:
        torch = self._scene.torch
        return (
            type(value) is torch.Tensor
            and value.is_floating_point()
            and not value.requires_grad
            and value.layout is torch.strided
            and 0 < value.numel() <= _LARGEST
        )

    def is_due(self, model: int, step: int) -> bool:
        """Return True at the first evaluation of a model in a step, for a limited number of steps."""
        looks = self._looks.setdefault(model, set())
        if model not in self._models or step in looks or len(looks) >= _MOST_LOOKS:
            return False
        looks.add(step)
        return True

    def changed(self, model: int) -> list[First]:
        """Return the tensors of a model that have changed, and share no memory with its parameters and buffers."""
        ref, firsts = self._models.get(model, (lambda: None, []))
        module, changed = ref(), [first for first in firsts if first.now() is not None]
        if module is None or not changed:
            return []
        state = {_memory(tensor) for tensor in (*module.parameters(), *module.buffers())}
        return [first for first in changed if _memory(first.now()) not in state]

    # --- saves -------------------------------------------------------------------------------------------------

    def saved(self, obj: Any) -> Iterator[tuple[int, tuple[str, ...], tuple[str, ...]]]:
        """Yield the changed attributes of each model that a save leaves out, and those that it contains.

        Yields:
            The model's number, the names left out (none if the state of the model is not saved), the names contained.
        """
        things = list(_inside(obj, self._scene.torch, 0))
        tensors = [thing for thing in things if isinstance(thing, self._scene.torch.Tensor)]
        for model, (ref, _) in self._models.items():
            module, changed = ref(), self.changed(model)
            if module is None or not changed:
                continue
            shapes = {name: parameter.shape for name, parameter in module.named_parameters()}
            whole = any(thing is part for thing in things for part in module.modules())
            state = any(_holds(thing, shapes) for thing in things if isinstance(thing, Mapping))
            held: list[str] = []
            missing: list[str] = []
            for first in changed:
                now = first.now()
                there = whole or any(_equal(tensor, now) for tensor in tensors)
                (held if there else missing).append(self.name(model, first))
            yield model, tuple(missing) if state else (), tuple(held)

    def name(self, model: int, first: First) -> str:
        """Return the path of an attribute in its model, such as "0.mean"."""
        module, owner = self._models[model][0](), first.owner()
        path = next((path for path, part in module.named_modules() if part is owner), "") if module is not None else ""
        return f"{path}.{first.name}" if path else first.name

    # --- trials ------------------------------------------------------------------------------------------------

    def depends(self, model: int, module: Any, call: Call) -> tuple[str, ...]:
        """Return the changed attributes that the model's training writes and its results depend on.

        Raises:
            Refused: the check is not possible.
        """
        for part in module.modules():
            own = [base for base in type(part).__mro__ if not base.__module__.startswith("torch.")]
            if any(way in vars(base) for base in own[:-1] for way in _OWN_WAYS) or any(map(vars(part).get, _HOOKS)):
                raise Refused("it has custom methods or hooks for its state")
        found = []
        for first in self.changed(model):
            trial = Trial(self._scene, copy_of(module, self._scene), call)
            if self._matters(trial, self.name(model, first), first):
                found.append(self.name(model, first))
        return tuple(found)

    def _matters(self, trial: Trial, path: str, first: First) -> bool:
        torch, copy = self._scene.torch, trial.copy
        place, _, name = path.rpartition(".")
        owner = copy.get_submodule(place)
        before = getattr(owner, name).clone()
        plain, again = trial.run(_SEED)[0], trial.run(_SEED)[0]
        if plain.shape != again.shape or not torch.equal(plain, again) or not torch.equal(getattr(owner, name), before):
            return False
        setattr(owner, name, first.value.clone())
        other = trial.run(_SEED)[0]
        setattr(owner, name, before.clone())
        for part in copy.modules():
            part.training = True
        trial.run(_SEED)
        written = getattr(owner, name)
        return not torch.equal(written, before) and _apart(plain, other)


def _memory(tensor: Any) -> int:
    """Return a number that identifies the storage of a tensor."""
    return int(tensor.untyped_storage()._cdata) if hasattr(tensor, "untyped_storage") else 0


def _apart(one: Any, other: Any) -> bool:
    """Return True if two results differ by more than a tenth of the spread of results."""
    if one.shape != other.shape or one.is_complex():
        return False
    one, other = one.double(), other.double()
    difference, spread = float((one - other).abs().mean()), float((one - one.mean(0)).abs().mean())
    return spread > 0 and difference > _OF_SPREAD * spread


def _holds(state: Mapping[Any, Any], shapes: dict[str, Any]) -> bool:
    """Return True if a mapping is the state of a model with parameters of these names and shapes."""
    return bool(shapes) and all(getattr(state.get(name), "shape", None) == shape for name, shape in shapes.items())


def _equal(one: Any, two: Any) -> bool:
    if one.shape != two.shape or one.dtype != two.dtype or one.is_quantized or not hasattr(one, "untyped_storage"):
        return False
    return bool((one.detach().to(two.device) == two.detach()).all())


def _inside(thing: Any, torch: Any, depth: int) -> Iterator[Any]:
    """Yield the mappings, modules and tensors inside a saved object."""
    todo, left = [(thing, depth)], _MOST_ITEMS
    while todo and left:
        thing, depth = todo.pop()
        left -= 1
        if isinstance(thing, torch.Tensor):
            yield thing
        elif isinstance(thing, torch.nn.Module):
            yield from thing.modules()
        elif depth < _DEEP and isinstance(thing, Mapping):
            yield thing
            todo += [(value, depth + 1) for value in thing.values()]
        elif depth < _DEEP and type(thing) in (list, tuple):
            todo += [(value, depth + 1) for value in thing]
        elif depth < _DEEP and isinstance(getattr(thing, "__dict__", None), dict) and not isinstance(thing, type):
            todo += [(value, depth + 1) for value in vars(thing).values()]
