"""Values before and after one step, at sampled steps: frozen parameters that move, updates that round to nothing."""

from __future__ import annotations

import ast
import dataclasses
import functools
import math
from typing import Any

from truestep import source
from truestep.events import FrozenStepped, LearningRateRead, Site, UpdateMeasured, UpdateRounded
from truestep.probes.context.scene import Scene, is_lazy
from truestep.probes.context.values import has_values
from truestep.probes.gradients.gradient_states import FRESH, MIXED, USED, Counts, Held, Panel, looks_zero
from truestep.seams.divided import is_divided
from truestep.seams.fsdp import is_freed

_LEAST_OF_KIND = 2
"""Least number of parameters of one dimension, and of more, to compare their weight decays."""
_GROUPS = 16
"""Parameter groups with learning rates that are read."""
_FROZEN = 64
_HALVES = 32
_WEIGHTS = 32
"""Weights with updates that are measured."""
_EARLY = 4
"""Steps of an optimizer with updates that are measured."""
_NEAR_ZERO = 0.1
"""Weights that begin smaller than this, relative to one over the root of their inputs, are meant to be near zero."""
_ELEMENTS = 256
_ALIKE = 1e-3
_LARGEST = 1 << 26
"""Parameters with more elements are not examined."""
_LONG = 100
"""Steps over which elements count as kept."""
_DRIFT = 2.0
"""Square of a sum of gradients, relative to the sum of squares, from which they have a direction; noise has about 1."""


@dataclasses.dataclass(slots=True)
class _Kept:
    """Elements of a parameter that have kept their value, with a gradient at all sampled steps."""

    first: Any
    since: int
    """Steps of the optimizer before the first sampled one."""
    same: Any
    total: Any
    """Sum of the gradients at sampled steps."""
    squares: Any


class Stepped:
    """Compares some elements of parameters before and after a step, and then drops them."""

    def __init__(self, scene: Scene) -> None:
        torch = scene.torch
        self._scene = scene
        self._halves = {torch.bfloat16: "bfloat16", torch.float16: "float16"}
        self._frozen: list[tuple[Held, str, Any]] = []
        self._rounded: list[tuple[Held, Any, Any]] = []
        self._weights: list[tuple[Held, Any]] = []
        self._holds_frozen = False
        self._lr = 0.0
        self._suspected: set[int] = set()
        self._kept: dict[tuple[int, int], _Kept] = {}
        """Elements of 16-bit parameters, by numbers of optimizer and parameter."""
        self._directions: dict[int, Any] = {}
        """Direction of the used gradient at the latest sampled step, by number of the frozen parameter."""

    def before(self, optimizer: Any, panel: Panel, counts: Counts, site: Site | None, *, closure: bool) -> None:
        """Copy some elements of parameters that the step must not change, and of those that it should change."""
        self._frozen, self._rounded, self._weights, self._holds_frozen = [], [], [], False
        read = self.rates(optimizer, panel.number, site)
        if read is not None:
            self._scene.emit(read)
        if closure or not counts.fresh + counts.mixed:
            return
        plain = type(optimizer).__module__.startswith("torch.optim")
        trained, early = False, self._scene.ledger.attempts.get(panel.number, 0) < _EARLY
        frozen: list[tuple[Held, Any]] = []
        halves: list[tuple[Held, Any]] = []
        resting = _resting(optimizer)
        for held in panel.everything:
            parameter = held.ref()
            if parameter is None or not readable(parameter) or held.flattened:
                continue
            if not parameter.requires_grad:
                self._holds_frozen = True
                if len(frozen) < _FROZEN and not (plain and parameter.grad is None):
                    frozen.append((held, parameter))
            elif held.state in (FRESH, MIXED):
                trained = True
                if early and parameter.dim() > 1 and len(self._weights) < _WEIGHTS:
                    self._weights.append((held, _some(parameter)))
                if plain and parameter.dtype in self._halves and len(halves) < _HALVES and id(parameter) not in resting:
                    halves.append((held, parameter))
        for held, parameter in frozen if trained else ():
            kind = self._kind(held, parameter, panel)
            if kind:
                self._frozen.append((held, kind, _some(parameter)))
        self._lr = _largest(optimizer)
        if self._lr > 0:
            self._rounded = [(held, _some(parameter), _some(parameter.grad)) for held, parameter in halves]

    def rates(self, optimizer: Any, number: int, site: Site | None = None) -> LearningRateRead | None:
        """Return the learning rates in an event; None for tensors, which are not read."""
        rates = [group.get("lr") for group in optimizer.param_groups[:_GROUPS]]
        if not rates or any(rate.__class__ not in (float, int) for rate in rates):
            return None
        rounded = tuple(float(f"{rate:.6g}") for rate in rates)
        others = settings(optimizer)
        return self._scene.event(
            LearningRateRead, optimizer=number, rates=rounded, settings=others, site=_written(site)
        )

    def after(self, panel: Panel, site: Site | None) -> None:
        """Emit the parameters that changed and those that did not."""
        frozen, rounded, weights = self._frozen, self._rounded, self._weights
        self._frozen, self._rounded, self._weights = [], [], []
        if self._holds_frozen:
            self._tell_frozen(frozen, panel, site)
        if rounded:
            self._tell_rounded(rounded, panel, site)
        if weights:
            self._tell_size(weights, panel, site)

    def _tell_size(self, weights: list[tuple[Held, Any]], panel: Panel, site: Site | None) -> None:
        """Emit the size of the update; weights near zero have no size to compare with."""
        norms: list[Any] = []
        usual: list[float] = []
        most = 0
        for held, before in weights:
            parameter = held.ref()
            if parameter is not None and has_values(parameter):
                norms += [(_some(parameter) - before).float().norm(), before.float().norm()]
                most = max(most, parameter.numel())
                usual.append(math.sqrt(len(before) * parameter.shape[0] / parameter.numel()))
        values: list[float] = self._scene.torch.stack(norms).tolist() if norms else []
        sizes = zip(values[::2], values[1::2], usual, strict=True)
        ratios = sorted(moved / size for moved, size, some in sizes if size > _NEAR_ZERO * some)
        if ratios and math.isfinite(ratios[-1]):
            ratio = float(f"{ratios[len(ratios) // 2]:.2g}")
            self._scene.tell(UpdateMeasured, optimizer=panel.number, ratio=ratio, values=most, site=site)

    def _kind(self, held: Held, parameter: Any, panel: Panel) -> str:
        """Return the kind of gradient that a frozen parameter brings to a step; "" if the step is intended."""
        if any(held in other.everything for other in self._scene.ledger.panels.values() if other is not panel):
            return ""
        if parameter.grad is None:
            return "bare"
        if held.state == USED:
            return "used"
        return "zero" if held.state not in (FRESH, MIXED) and looks_zero(parameter.grad) else ""

    def _tell_frozen(self, frozen: list[tuple[Held, str, Any]], panel: Panel, site: Site | None) -> None:
        moved: dict[str, list[int]] = {"used": [], "zero": [], "bare": []}
        for held, kind, values in frozen:
            parameter = held.ref()
            if parameter is None or parameter.requires_grad:
                continue
            now = _some(parameter)
            if not _differs(now, values) or (kind == "bare" and not _is_decay(now, values)):
                continue
            if panel.number not in self._suspected:
                self._suspected.add(panel.number)
                self._scene.changed()
            if kind != "used" or self._is_same(held, parameter.grad):
                moved[kind].append(held.number)
        numbers = {kind: tuple(parameters) for kind, parameters in moved.items()}
        self._scene.emit(FrozenStepped(optimizer=panel.number, site=site, **numbers))

    def _is_same(self, held: Held, gradient: Any) -> bool:
        """Return True if a used gradient kept its direction: a write that bypasses its version would change it."""
        if gradient is None:
            return False
        now = _some(gradient).float()
        now = now / now.abs().max().clamp_min(1e-30)
        before = self._directions.get(held.number)
        self._directions[held.number] = now
        return before is not None and before.shape == now.shape and bool(((now - before).abs() <= _ALIKE).all())

    def _tell_rounded(self, rounded: list[tuple[Held, Any, Any]], panel: Panel, site: Site | None) -> None:
        elements = changed = 0
        whole = part = 0.0
        dtype = ""
        for held, values, gradient in rounded:
            parameter = held.ref()
            if parameter is None:
                continue
            sizes = gradient.float().abs()
            different = (_some(parameter) != values) & (sizes > 0)
            elements += int((sizes > 0).sum())
            changed += int(different.sum())
            whole += float(sizes.sum())
            part += float(sizes[different].sum())
            dtype = self._halves[parameter.dtype]
        kept = self._share_kept(rounded, panel)
        if elements and math.isfinite(whole):
            share = float(f"{max(changed / elements, part / whole):.2g}")
            self._scene.tell(
                UpdateRounded, optimizer=panel.number, dtype=dtype, changed=share, lr=self._lr, kept=kept, site=site
            )

    def _share_kept(self, rounded: list[tuple[Held, Any, Any]], panel: Panel) -> float:
        """Return the fraction of weights that kept their value over many steps; 0.0 if their gradients are noise."""
        weights = size = kept_weights = kept_size = drift = noise = 0.0
        for held, values, gradient in rounded:
            parameter = held.ref()
            if parameter is None:
                continue
            gradient = gradient.float()
            entry, is_old = self._kept_by(held, panel, _some(parameter), values, gradient)
            times = parameter.numel() / len(gradient)
            weights += times * int((gradient != 0).sum())
            size += times * float(gradient.abs().sum())
            if is_old:
                kept_weights += times * int(entry.same.sum())
                kept_size += times * float(gradient[entry.same].abs().sum())
                drift += float(entry.total[entry.same].square().sum())
                noise += float(entry.squares[entry.same].sum())
        if not size or not drift >= _DRIFT * noise > 0:
            return 0.0
        return float(f"{min(kept_weights / weights, kept_size / size):.2g}")

    def _kept_by(self, held: Held, panel: Panel, now: Any, before: Any, gradient: Any) -> tuple[_Kept, bool]:
        """Return the elements of a parameter that were the same at all sampled steps, and whether these are many."""
        steps = self._scene.ledger.attempts.get(panel.number, 0)
        entry = self._kept.get((panel.number, held.number))
        if entry is None or entry.first.shape != now.shape or entry.first.dtype != now.dtype:
            entry = _Kept(before, steps, gradient != 0, gradient * 0, gradient * 0)
            self._kept[panel.number, held.number] = entry
        entry.same = entry.same.to(now.device) & (now == entry.first.to(now.device)) & (gradient != 0)
        entry.total = entry.total.to(now.device) + gradient
        entry.squares = entry.squares.to(now.device) + gradient.square()
        return entry, steps - entry.since >= _LONG


def _written(step: Site | None) -> Site | None:
    """Return the only line that assigns a learning rate in the file of a step, as in ``group["lr"] = rate``."""
    found = _writes(step.path) if step is not None else ()
    return found[0] if len(found) == 1 else None


@functools.lru_cache(maxsize=64)
def _writes(path: str) -> tuple[Site, ...]:
    tree = source.parsed(path)
    return tuple(
        Site(path, node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)
        for node in (source.walk(tree) if tree is not None else ())
        if isinstance(node, ast.Assign | ast.AugAssign)
        and any(_is_rate(one) for one in (node.targets if isinstance(node, ast.Assign) else [node.target]))
    )


def _is_rate(target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and target.slice.value == "lr"


def readable(parameter: Any) -> bool:
    """Return True for an ordinary parameter with values that are cheap to read."""
    if is_lazy(parameter) or not parameter.is_floating_point() or not has_values(parameter):
        return False
    if is_divided(parameter) or is_freed(parameter):
        return False
    grad = parameter.grad
    return 0 < parameter.numel() <= _LARGEST and (grad is None or has_values(grad))


def _some(tensor: Any) -> Any:
    """Return a copy of some elements, the same ones every time."""
    flat = tensor.detach().reshape(-1)
    return flat[:: max(1, flat.numel() // _ELEMENTS)][:_ELEMENTS].clone()


def _differs(now: Any, before: Any) -> bool:
    """Return True if values changed; NaN does not count as a change."""
    return bool(((now != before) & (now == now) & (before == before)).any())


def _is_decay(now: Any, before: Any) -> bool:
    """Return True if all values shrank by the same factor."""
    large = before.abs() > before.abs().max() * 0.1
    factors = (now[large] / before[large]).float()
    least, most = float(factors.min()), float(factors.max())
    return 0 < least <= most < 1 and most - least <= _ALIKE * (1 - least)


def _resting(optimizer: Any) -> set[int]:
    """Return the parameters that have a learning rate of zero."""
    groups = [
        group for group in optimizer.param_groups if group.get("lr").__class__ in (float, int) and not group["lr"]
    ]
    return {id(parameter) for group in groups for parameter in group["params"]}


def _largest(optimizer: Any) -> float:
    """Return the largest learning rate; 0.0 if one is unknown."""
    rates = [group.get("lr") for group in optimizer.param_groups]
    return max(map(float, rates)) if rates and all(isinstance(rate, int | float) for rate in rates) else 0.0


def settings(optimizer: Any) -> tuple[tuple[str, float], ...]:
    """Return the settings of an optimizer of torch that decide how earlier gradients count, of its first group."""
    if not type(optimizer).__module__.startswith("torch.optim.") or not optimizer.param_groups:
        return ()
    group = optimizer.param_groups[0]
    betas = group.get("betas")
    pairs = zip(("beta1", "beta2"), betas if isinstance(betas, tuple | list) else (), strict=False)
    names = ("momentum", "alpha") if "centered" in group else ("momentum",)  # the alpha of ASGD is another one
    given = [(name, group.get(name)) for name in names if name in group]
    known = (int, float)  # those of NumPy too
    return tuple((name, float(value)) for name, value in (*given, *pairs) if isinstance(value, known))


def decay_of_vectors(optimizer: Any) -> float:
    """Return the least weight decay of parameters of one dimension, if all that train have one and no matrix has."""
    decays: dict[bool, list[float]] = {False: [], True: []}
    for group in optimizer.param_groups:
        decay = group.get("weight_decay")
        for parameter in group["params"]:
            if type(parameter).__module__.partition(".")[0] != "torch":
                return 0.0  # a class of the program, whose code would run
            if not parameter.requires_grad:  # frozen matrices need no decay
                continue
            decays[parameter.dim() > 1].append(float(decay) if isinstance(decay, int | float) else 0.0)
    if min(map(len, decays.values())) < _LEAST_OF_KIND or any(decays[True]):
        return 0.0
    return min(decays[False])
