"""Records of models: parameters, layers that depend on the mode, and wrappers around them."""

from __future__ import annotations

import sys
import weakref
from types import FrameType
from typing import Any

from truestep.events import ModelMet, UnregisteredModuleCalled
from truestep.probes.context.local_variables import argument
from truestep.probes.context.names import callee
from truestep.probes.context.scene import Depth, Scene
from truestep.probes.context.values import has_values
from truestep.probes.forward.layers.repeated import look_for_repeats
from truestep.probes.forward.layers.settings import LayerSettings
from truestep.probes.forward.layers.unwritten import Unwritten
from truestep.probes.gradients.ineffective_freezes import freeze_line
from truestep.probes.optimizer.fresh_weights import fresh_weights
from truestep.probes.optimizer.sampled_measures import first_values
from truestep.seams.refs import Ref

_SENSITIVE = (
    "Dropout", "AlphaDropout", "FeatureAlphaDropout", "RReLU", "BatchNorm", "SyncBatchNorm", "InstanceNorm",
    "DropPath", "StochasticDepth",
)  # fmt: skip
_RATES = ("p", "drop_prob", "drop_rate", "rate", "prob")
"""Names of the rate in layers that drop at random."""
_SENTINELS = 4
_MOST_KNOWN = 8
_MOST_VALUES = 1 << 22


class Model:
    """The record of a module that user code calls."""

    __slots__ = ("count", "device", "is_met_now", "known", "last_input", "number", "ref", "sensitive", "trainable")

    def __init__(self, number: int, module: Any) -> None:
        self.number = number
        self.ref = weakref.ref(module)
        self.count = -1
        self.is_met_now = False
        self.trainable = False
        self.device = "cpu"
        self.sensitive: list[tuple[str, weakref.ref[Any]]] = []
        self.last_input: Ref | int | None = None
        """The first argument of the latest call; its id where it can have no weak reference (a list, a dict)."""
        self.known: list[tuple[Ref, int]] = []
        """Inputs of calls in train mode without gradients, each with the step of its first call."""

    def repeats_input(self, args: tuple[Any, ...]) -> bool:
        """Return True if the first argument is the object of the call before; remember it for the next call.

        The id of a tensor is not enough: a slice that is freed after the call leaves its id to the next slice.
        """
        if not args:
            self.last_input = None
            return False
        first, last = args[0], self.last_input
        same = last == id(first) if isinstance(last, int) else last is not None and last() is first
        if not same:
            try:
                self.last_input = Ref(first)
            except TypeError:
                self.last_input = id(first)
        return same

    def has_repeated_rows(self) -> bool:
        """Return True if the first argument of the latest call has each sample several times, for several draws."""
        first: Any = self.last_input() if isinstance(self.last_input, Ref) else None
        count = getattr(first, "shape", ())[:1]
        if not count or not getattr(first, "is_cpu", False) or not has_values(first):
            return False
        if not 1 < count[0] <= first.numel() <= _MOST_VALUES:
            return False
        rows = first.detach().reshape(count[0], -1)
        alike = (rows == rows[:1]).all(1).nonzero().flatten().tolist()
        times = len(alike)
        if times < 2 or count[0] % times:
            return False
        after = rows.reshape(times, count[0] // times, -1)
        beside = rows.reshape(count[0] // times, times, -1)
        return bool((after == after[:1]).all()) or bool((beside == beside[:, :1]).all())

    def knows(self, step: int) -> bool:
        """Return True if the input of the latest call is that of an earlier such call, before this step, or a part."""
        first = self.last_input() if isinstance(self.last_input, Ref) else None
        if first is None:
            return False
        base = getattr(first, "_base", None)
        whole = first if base is None else base
        for ref, begun in self.known:
            if ref() is whole:
                return begun < step
        self.known = [entry for entry in self.known if entry[0]() is not None][-_MOST_KNOWN + 1 :]
        self.known.append((Ref(whole), step))
        return False

    def follows(self, depth: Depth) -> None:
        """Enter the module with the mode that a dropout function follows among the layers that depend on it."""
        owner, depth.modal = depth.modal, None
        if len(self.sensitive) < _SENTINELS and not any(ref() is owner for _, ref in self.sensitive):
            self.sensitive.append(("F.dropout", weakref.ref(owner)))

    def switched_on(self) -> int:
        """Return the modes of the mode-sensitive layers as bits: 1 for train mode."""
        on = 0
        for bit, (_, ref) in enumerate(self.sensitive):
            layer = ref()
            if layer is not None and layer.training:
                on |= 1 << bit
        return on


class Models:
    """The modules that user code calls; emits an event when one is first met."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._module = scene.torch.nn.Module
        self._grad_enabled = scene.torch.is_grad_enabled
        self._has_autocast = scene.torch.amp.is_autocast_available
        self._known: dict[int, Model] = {}
        self._settings = LayerSettings(scene)
        self.unwritten = scene.unwritten = Unwritten(scene)
        self._wholes: set[tuple[int, int]] = set()

    def met(self, module: Any, frame: FrameType | None, name: str = "") -> Model:
        """Return the record of a module; emit an event if it is new or its parameters have changed."""
        scene = self.scene
        model = self._known.get(id(module))
        if model is None or model.ref() is not module:
            number, _ = scene.numbers.of("model", module)
            model = self._known[id(module)] = Model(number, module)
            if len(self._known) > 512:
                self._known = {key: old for key, old in self._known.items() if old.ref() is not None}
        elif not scene.sampling.on:
            return model
        parameters = list(module.parameters()) if isinstance(module, self._module) else []
        if len(parameters) == model.count and all(scene.ledger.held(p) is not None for p in parameters):
            return model
        fresh, model.count = model.count < 0, len(parameters)
        if parameters and not model.is_met_now:  # by another thread
            model.is_met_now = True
            try:
                self._introduce(module, model, parameters, frame, name)
            finally:
                model.is_met_now = False
            if fresh:
                site = scene.sites.at(frame)
                self._settings.look(module, model.number, site)
                look_for_repeats(scene, module, model.number, site)
                self.unwritten.meet(module, model.number, site)
        return model

    def _introduce(self, module: Any, model: Model, parameters: list[Any], frame: FrameType | None, name: str) -> None:
        """Emit the event of a model, and give its parameters their numbers."""
        scene = self.scene
        scene.numbers.of("trained model", module)
        device = parameters[0].device.type
        model.device = device if self._has_autocast(device) else "cpu"
        model.trainable = any(p.requires_grad for p in parameters)
        if scene.checks is not None:
            scene.checks.met(module, model.number)
        if model.trainable and scene.sampling.step and self._grad_enabled():
            scene.changed()
        site = scene.sites.at(frame)
        name = name or callee(site, type(module).__name__.lower())
        records = []
        for key, parameter in module.named_parameters():
            held = scene.hold(parameter, f"{name}.{key}", model.number)
            if type(parameter) is scene.torch.nn.Parameter:  # inside vmap, modules hold tensors that cannot be read
                first_values(held, parameter, scene.sampling.step)
            records.append(held)
        kinds: dict[str, tuple[str, weakref.ref[Any]]] = {}
        for layer in module.modules():
            kind = _sensitive_kind(layer)
            if kind:
                kinds.setdefault(kind, (kind, weakref.ref(layer)))
        model.sensitive = list(kinds.values())[:_SENTINELS]
        scene.emit(
            ModelMet(
                model=model.number,
                name=name,
                kind=type(module).__name__,
                parameters=tuple(held.number for held in records),
                installed=any(self._is_installed(cls) for cls in {type(layer) for layer in module.modules()}),
                sensitive=tuple(sorted(kinds)),
                fresh=fresh_weights(scene, [one for one in records if one.base is not None]),
                freeze=None if all(p.requires_grad for p in parameters) else freeze_line(scene.sites.own_files()),
                site=site,
            )
        )

    def _is_installed(self, cls: type) -> bool:
        """Return True if a class belongs to an installed library other than torch."""
        if cls.__module__.partition(".")[0] == "torch":
            return False
        path = getattr(sys.modules.get(cls.__module__), "__file__", None)
        return path is not None and self.scene.sites.is_installed(path)

    def whole(self, module: Any, frame: FrameType, user: FrameType | None) -> None:
        """Meet the module with a method, not ``forward``, that calls a part of it (``training_step`` of Lightning).

        A module in a plain list or dict of it is a part that it does not register.
        """
        key = (id(frame.f_code), id(module))
        if key in self._wholes and not self.scene.sampling.on:
            return
        if len(self._wholes) > 4096:
            self._wholes.clear()
        self._wholes.add(key)
        self.scene.sites.keep(frame.f_code)
        whole = argument(frame, "self")
        if not isinstance(whole, self._module) or whole is module:
            return
        if any(part is module for part in whole.modules()):
            self.met(whole, user, "self")
        elif self.scene.sampling.on and self._grad_enabled() and (name := where(whole, module)):
            self._unregistered(whole, module, name, user)

    def _unregistered(self, whole: Any, module: Any, name: str, user: FrameType | None) -> None:
        """Emit the call of a module that is kept in a plain attribute of another one."""
        scene = self.scene
        parameters = module.parameters() if isinstance(module, self._module) else ()
        trainable = tuple(scene.hold(p).number for p in parameters if p.requires_grad)
        if trainable and next(whole.parameters(), None) is not None:
            scene.emit(
                UnregisteredModuleCalled(
                    model=self.met(whole, user, "self").number,
                    kind=type(module).__name__,
                    name=name,
                    parameters=trainable,
                    by_method=True,
                    site=scene.sites.at(user),
                )
            )


def where(root: Any, module: Any) -> str:
    """Return where in the model's plain attributes an unregistered module is kept, such as "layers[0]"."""
    for path, owner in root.named_modules():
        for attribute, value in vars(owner).items():
            if attribute.startswith("_"):
                continue
            items: list[tuple[object, Any]] = []
            if isinstance(value, list | tuple):
                items = list(enumerate(value))
            elif isinstance(value, dict):
                items = list(value.items())
            for key, item in items[:200]:
                if item is module:
                    return f"{path + '.' if path else ''}{attribute}[{key!r}]"
    return ""


def _sensitive_kind(layer: Any) -> str:
    """Return the kind of a layer that depends on its mode; "" for others."""
    kind = type(layer).__name__
    names = [base.__name__ for base in type(layer).__mro__]
    if any(name.startswith("_InstanceNorm") for name in names):
        return kind if layer.track_running_stats else ""
    if any(name == "_BatchNorm" for name in names):
        return kind if layer.track_running_stats else ""
    if any(name == "_DropoutNd" for name in names):
        return kind if layer.p > 0 else ""
    if any(name == "RNNBase" for name in names):
        return kind if layer.dropout > 0 and layer.num_layers > 1 else ""
    if kind == "MultiheadAttention":
        return kind if getattr(layer, "dropout", 0) > 0 else ""
    if not kind.startswith(_SENSITIVE):
        return ""
    rates = [getattr(layer, name, None) for name in _RATES]
    off = any(isinstance(rate, int | float) and rate == 0 for rate in rates)
    return "" if off else kind
