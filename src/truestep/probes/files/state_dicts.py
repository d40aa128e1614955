"""State dicts: time of the call, tensors shared with the module, and the names that a load found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from truestep import seams
from truestep.events import Site
from truestep.probes.context.scene import Scene, is_lazy
from truestep.probes.gradients.gradient_states import version
from truestep.seams.divided import part
from truestep.seams.refs import Ref

_MOST_TAKEN = 128
_MOST_CANDIDATES = 16

Shapes = dict[str, tuple[int, ...]]


class Taken:
    """A call of ``state_dict()``: its place, the number of steps and loads before it, and the versions of its tensors.

    Loading the returned state dict counts as the latest step.
    """

    __slots__ = ("loads", "site", "step", "versions")

    def __init__(self, site: Site | None, step: int, loads: int, versions: dict[str, int]) -> None:
        self.site = site
        self.step = step
        self.loads = loads
        self.versions = versions


class Changed(NamedTuple):
    """A state dict that consists of a module's own tensors, which have changed since the call."""

    taken: Taken
    steps: int
    """Optimizer steps since the call, or since its latest load."""
    overwritten: bool
    """True if other weights were loaded into the module meanwhile."""


class Reading(NamedTuple):
    """The change of names by which missing tensors are found in a state dict."""

    found: int = 0
    added: str = ""
    lacking: str = ""
    inner: str = ""


class States:
    """Remembers state dicts that are alive, by weak references to three of their tensors."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._taken: dict[int, tuple[Ref, Taken]] = {}
        self._latest: dict[int, Taken] = {}
        """Memory of a module's first tensor to the latest call of its ``state_dict()``."""
        self._loads = 0
        """Number of loads of other weights."""
        self._overwritten: dict[int, int] = {}
        """Number of loads at the time a module got other weights, by number of the module."""

    def take(self, state: Mapping[str, Any], site: Site | None) -> None:
        """Remember a call of ``state_dict()``."""
        tensor = self._scene.torch.Tensor
        tensors = {name: value for name, value in state.items() if isinstance(value, tensor)}
        if not tensors:
            return
        taken = Taken(site, self.step(), self._loads, {name: version(value) for name, value in tensors.items()})
        values = list(tensors.values())
        if len(self._latest) > _MOST_TAKEN:
            self._latest.clear()
        self._latest[_memory(values[0])] = taken
        for value in (values[0], values[len(values) // 2], values[-1]):
            self._taken.pop(id(value), None)
            self._taken[id(value)] = (Ref(value), taken)
        if len(self._taken) > _MOST_TAKEN:
            alive = [(key, entry) for key, entry in self._taken.items() if entry[0]() is not None]
            self._taken = dict(alive[-_MOST_TAKEN // 2 :])

    def step(self) -> int:
        """Return the number of steps, including those that were coasted over."""
        coast = self._scene.coast
        return coast.number if coast.on else self._scene.sampling.step

    def own(self, number: int, module: Any, state: Mapping[str, Any]) -> Changed | None:
        """Record a load; return a `Changed` if the state dict consists of own tensors that training changed."""
        taken = next((entry for value in state.values() if (entry := self._entry(value)) is not None), None)
        if taken is None and isinstance(first := next(iter(state.values()), None), self._scene.torch.Tensor):
            taken = self._latest.get(_memory(first))  # views of the tensors that were taken
        mine = {} if taken is None else dict(module.named_buffers(remove_duplicate=False))
        mine |= {} if taken is None else dict(module.named_parameters(remove_duplicate=False))
        if taken is None or not all(self._is(value, mine.get(name)) for name, value in state.items()):
            self._loads += 1
            self._overwritten[number] = self._loads
            return None
        now = self.step()
        changed = Changed(taken, now - taken.step, self._overwritten.get(number, 0) > taken.loads)
        taken.step = now
        if not changed.steps and not changed.overwritten:
            return None
        for name, value in state.items():
            held = self._scene.ledger.held(mine[name])
            trained = held is not None and held.panel is not None and held.panel.number
            if trained and version(value) != taken.versions.get(name, version(value)):
                return changed
        return None

    def _is(self, value: Any, there: Any) -> bool:
        return there is not None and isinstance(value, self._scene.torch.Tensor) and _same_memory(value, there)

    def _entry(self, value: Any) -> Taken | None:
        entry = self._taken.get(id(value))
        return entry[1] if entry is not None and entry[0]() is value else None


def _memory(tensor: Any) -> int:
    """Return the address of the memory that a tensor shares; 0 if it has none."""
    tensor = part(tensor)
    if is_lazy(tensor) or str(tensor.layout) != "torch.strided":
        return 0
    return int(tensor.untyped_storage()._cdata)


def _same_memory(one: Any, two: Any) -> bool:
    one, two = part(one), part(two)
    if is_lazy(one) or is_lazy(two) or any(str(tensor.layout) != "torch.strided" for tensor in (one, two)):
        return False
    return bool(
        one.shape == two.shape
        and one.storage_offset() == two.storage_offset()
        and one.untyped_storage()._cdata == two.untyped_storage()._cdata
    )


def shapes(named: Iterable[tuple[str, Any]]) -> Shapes:
    """Return the shapes by name, of values that have one."""
    return {str(name): tuple(thing.shape) for name, thing in named if not is_lazy(thing) and hasattr(thing, "shape")}


def read(missing: Shapes, state: Mapping[str, Any]) -> Reading:
    """Find the missing tensors of a module in a state dict, under longer or shorter names, or one dict further in."""
    best = _renamed(missing, shapes(state.items()))
    for key, value in state.items():
        if not best.found and isinstance(value, Mapping):
            offered = shapes(value.items())
            reading = Reading(sum(offered.get(name) == shape for name, shape in missing.items()))
            reading = reading if reading.found else _renamed(missing, offered)
            best = reading._replace(inner=str(key)) if reading.found else best
    return best


def _renamed(missing: Shapes, offered: Shapes) -> Reading:
    """Find missing tensors among those offered, under names with an added or a lacking prefix.

    >>> _renamed({"0.weight": (2, 3)}, {"module.0.weight": (2, 3)})
    Reading(found=1, added='module.', lacking='', inner='')
    >>> _renamed({"net.0.weight": (2, 3), "net.0.bias": (2,)}, {"0.weight": (2, 3)}).lacking
    'net.'
    """
    best = Reading()
    if not missing or not offered:
        return best
    first = list(missing)
    for name in (first[0], first[len(first) // 2], first[-1]):
        alike = [other for other, shape in offered.items() if shape == missing[name]]
        for other in alike[:_MOST_CANDIDATES]:
            if other.endswith(f".{name}"):
                added = other.removesuffix(name)
                found = sum(offered.get(added + key) == shape for key, shape in missing.items())
                best = max(best, Reading(found, added=added))
            elif name.endswith(f".{other}"):
                lacking = name.removesuffix(other)
                under = {key.removeprefix(lacking): shape for key, shape in missing.items() if key.startswith(lacking)}
                best = max(best, Reading(sum(offered.get(key) == shape for key, shape in under.items()), "", lacking))
    wrapped = {part for name in offered for part in name.split(".")} & seams.wrappers.NAMES
    if wrapped and not best.found:
        bare = {seams.wrappers.bare(name): shape for name, shape in offered.items()}
        found = sum(bare.get(name) == shape for name, shape in missing.items())
        best = max(best, Reading(found, added=f"{min(wrapped)}."))
    return best
