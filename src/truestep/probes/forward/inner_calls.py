"""Calls inside of a model at sampled steps: the parameters that take part, and modules that are not registered."""

from __future__ import annotations

import weakref
from types import FrameType
from typing import Any

from truestep.events import LayerRan, Site, UnregisteredModuleCalled
from truestep.probes.context.local_variables import argument
from truestep.probes.context.scene import Scene
from truestep.probes.embeddings.reads import EmbeddingReads
from truestep.probes.forward.layers.norms import Norms
from truestep.probes.forward.layers.twins import Twins
from truestep.probes.forward.model import Model, where
from truestep.probes.gradients.plain_tensors import PlainTensors
from truestep.probes.unread.states import InnerStates


class InnerCalls:
    """Emits `LayerRan`, `TwinIdle` and `UnregisteredModuleCalled`, and of embeddings `EmbeddingRead`."""

    def __init__(self, scene: Scene, norms: Norms) -> None:
        self._scene = scene
        self._norms = norms
        self._module = scene.torch.nn.Module
        self._plain = PlainTensors(scene)
        self._twins = Twins(scene)
        self._embeddings = EmbeddingReads(scene)
        self.states = InnerStates(scene)
        self._evaluated: tuple[int, Any] = 0, None
        """Number of the model of the current evaluation, and its weak reference."""
        self._unregistered: dict[tuple[Any, ...], UnregisteredModuleCalled] = {}
        self._root: Any = None
        self._called_at: Site | None = None
        """Line that calls the model."""
        self._registered: set[int] = set()
        """The modules of the model that is called. Others can be freed in its forward, and their ids used again."""
        self._met: weakref.WeakSet[Any] = weakref.WeakSet()
        """The other modules that were met in this call of the model."""
        self.created: weakref.WeakSet[Any] = weakref.WeakSet()
        """Modules that registered a parameter inside of a call."""

    def begin(self, model: Model, site: Site | None, args: tuple[Any, ...]) -> None:
        """Handle the start of a call of a model at a sampled step."""
        module: Any = model.ref()
        self._called_at = site
        self._root = model.ref
        self._registered = {id(m) for m in module.modules()}
        self._met.clear()
        self._norms.begin(model.number, args)
        self._plain.look(model.number, module)
        self._scene.draws.passed(module, args)
        self._twins.begin(module)
        self._own(module)
        self._embeddings.begin(module, args)
        if self._embeddings.is_one(module):
            self._embeddings.called(module, args, site)

    def end(self, model: int, module: Any) -> None:
        """Handle the end of such a call."""
        self._embeddings.end(model, module)
        self._twins.end(module)

    def evaluates(self, model: Model, site: Site | None, args: tuple[Any, ...]) -> bool:
        """Handle the start of a call without gradients; return True if the calls inside of it are to be handled."""
        if not self._embeddings.untrained.begins():
            return False
        module: Any = model.ref()
        self._evaluated = model.number, model.ref
        if self._embeddings.is_one(module):
            self._embeddings.untrained.evaluated(model.number, module, module, args, site)
        return True

    def evaluated(self, module: Any, args: tuple[Any, ...]) -> None:
        """Handle the call of a module inside of such a call."""
        number, ref = self._evaluated
        root = ref()
        if self._embeddings.is_one(module) and root is not None:
            self._embeddings.untrained.evaluated(number, root, module, args, self._scene.sites.here(3))

    def called(self, module: Any, args: tuple[Any, ...]) -> None:
        """Handle the call of a module inside of the model."""
        scene = self._scene
        if args and type(module) in self._norms.kinds:
            self._norms.met(module, args[0])
        scene.draws.passed(module, args)
        self._twins.called(module)
        if self._embeddings.is_one(module) and scene.torch.is_grad_enabled():
            self._embeddings.called(module, args, scene.sites.here(3))
        self._own(module, grad=scene.torch.is_grad_enabled())
        if scene.unread is not None:
            scene.unread.look(scene.sites.frame(3), depth=1)
        if id(module) in self._registered or module in self._met:
            return
        self._met.update(module.modules())
        trainable = [p for p in module.parameters() if p.requires_grad] if isinstance(module, self._module) else []
        root = self._root() if self._root is not None else None
        if not trainable or root is None or _is_given(root, module, scene.sites.users(scene.sites.frame(3))):
            return
        number = scene.numbers.known("model", root) or 0
        site = scene.sites.here(3)
        fresh = module in self.created
        numbers = tuple(scene.hold(p).number for p in trainable)
        key = (number, id(site), type(module).__name__, fresh, () if fresh else numbers)
        event = self._unregistered.get(key)
        if event is None:
            event = self._unregistered[key] = UnregisteredModuleCalled(
                model=number,
                kind=type(module).__name__,
                name=where(root, module),
                parameters=numbers,
                fresh=fresh,
                site=site,
            )
        scene.emit(event)

    def _own(self, module: Any, *, grad: bool = True) -> None:
        """Record that a module's own parameters took part in a forward call."""
        scene, ledger = self._scene, self._scene.ledger
        own = [parameter for parameter in module._parameters.values() if parameter is not None]
        if not own:
            return
        taken = ledger.forwarded if grad else ledger.without_grad
        numbers, places = [scene.hold(parameter).number for parameter in own], scene.sites.chain()
        self._twins.ran(module, places[0] if places else None)
        for parameter, number in zip(own, numbers, strict=True):
            if parameter.requires_grad:
                taken.setdefault(number, places)
        if not grad:
            ledger.ran_without_grad.update(numbers)
        met = ledger.ran.keys() >= set(numbers)
        ledger.ran.update(dict.fromkeys(numbers, scene.sampling.step))
        if not met:
            inside = places[: places.index(self._called_at)] if self._called_at in places else places
            inner, outer = (inside[0], inside[-1]) if inside else (self._called_at, self._called_at)
            scene.emit(LayerRan(parameters=tuple(numbers), site=inner, outer=outer))


def _is_given(root: Any, module: Any, frames: list[FrameType]) -> bool:
    """Return True if a call passes a module to the forward of a model: it belongs to the caller."""
    for frame in frames:
        code = frame.f_code
        if code.co_name == "forward" and code.co_argcount > 1 and argument(frame, "self") is root:
            return any(argument(frame, name) is module for name in code.co_varnames[1 : code.co_argcount])
    return False
