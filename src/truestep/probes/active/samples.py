"""Whether the result for one sample depends on the other samples of its batch, and which operation makes it so.

The copy runs twice: with the batch, and with a batch in which every other sample is replaced by the one looked at. What
belongs to that sample has to be the same in both, along the dimension in which the samples lie.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import Any

from truestep.events import Site
from truestep.probes.active.copies import Refused
from truestep.probes.active.trial import Trial
from truestep.probes.context.scene import Scene
from truestep.probes.gradients.gradient_states import as_real

_SEED = 1_234_567
_MOST_PASSAGES = 200
_OF_SIZE = 1e-4
_OF_SPREAD = 1e-2


@dataclass(slots=True)
class Passage:
    """One call through which the samples went: what belonged to the sample before and after."""

    kind: str
    site: Site | None
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    before: dict[int, Any] = field(default_factory=dict)
    """Dimension as long as the batch to the part of the input that lies there at the place of the sample."""
    after: dict[int, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mixing:
    """What came out: whether samples are mixed in the result, and what mixes them, where."""

    mixed: bool = False
    cause: str = ""
    """"batch_first" or "view", empty where the cause is not known."""
    kind: str = ""
    site: Site | None = None
    shapes: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())


def compare(trial: Trial) -> Mixing:
    """Find out whether samples are mixed.

    Raises:
        Refused: it cannot be said.
    """
    torch, batch = trial.scene.torch, trial.args[0]
    at = batch.shape[0] - 1
    others = batch[:at]
    if bool((others == batch[at]).all()):
        raise Refused("all samples of the batch are equal")
    index = torch.full((at + 1,), at, dtype=torch.long, device=batch.device)
    alike = batch.index_select(0, index)
    watcher = _Watcher(trial.scene, trial.copy, at)
    with watcher:
        plain, first = trial.run(_SEED, mode=watcher.functions()), watcher.taken()
        same, _ = trial.run(_SEED, mode=watcher.functions()), watcher.taken()
        if plain.shape != same.shape or not torch.equal(plain, same):
            raise Refused("it gives another result for the same batch")
        other, second = trial.run(_SEED, (alike,), mode=watcher.functions()), watcher.taken()
    if plain.shape != other.shape or not plain.dim() or plain.shape[0] != at + 1:
        raise Refused("its result has no row per sample")
    if not bool(torch.isfinite(plain).all() and torch.isfinite(other).all()):
        raise Refused("its result is not finite")
    mixed = _differ(plain[at], other[at], plain)
    found = _cause(first, second)
    return replace(found, mixed=mixed) if mixed or found.cause == "batch_first" else Mixing()


def _differ(one: Any, two: Any, whole: Any) -> bool:
    """Whether two results for a sample differ by more than rounding, measured by how results differ anyway."""
    if whole.is_complex():
        one, two, whole = as_real(one), as_real(two), as_real(whole)
    whole = whole.double()
    difference = float((one.double() - two.double()).abs().max())
    size, spread = float(whole.abs().max()), float((whole - whole.mean(0)).abs().max())
    return difference > max(_OF_SIZE * size, _OF_SPREAD * spread)


def _cause(first: list[Passage], second: list[Passage]) -> Mixing:
    """Return the first passage that mixes samples in a way that is known to be a mistake."""
    if [one.kind for one in first] != [two.kind for two in second]:
        return Mixing()
    right = False
    found = Mixing()
    for one, two in zip(first, second, strict=True):
        before, after = _kept(one.before, two.before), _kept(one.after, two.after)
        cause = ""
        if one.kind in ("view", "reshape"):
            cause = "view" if _scrambled(one, before, after) else ""
        elif before == [0] and 0 in one.after and not after:
            cause = "batch_first"
        elif before == [1] and 1 in after and one.kind == "MultiheadAttention":
            right = True
        if cause and not found.cause:
            found = Mixing(cause=cause, kind=one.kind, site=one.site, shapes=one.shapes)
    if found.kind == "MultiheadAttention" and right:
        return Mixing()  # attention over samples beside attention within them is a design
    return found


def _kept(one: dict[int, Any], two: dict[int, Any]) -> list[int]:
    """Return the dimensions along which the sample's part is the same in both runs."""
    kept = []
    for dimension, part in one.items():
        other = two.get(dimension)
        if other is not None and part.shape == other.shape and not _differ(part, other, part.reshape(1, -1)):
            kept.append(dimension)
    return kept


def _scrambled(passage: Passage, before: list[int], after: list[int]) -> bool:
    """Whether a view gave another shape to what lay in order, as if it moved the dimension of the samples."""
    if len(before) != 1 or after:
        return False
    source, result = passage.shapes
    if before[0] == 0:
        swapped = (source[1], source[0], *source[2:]) if len(source) > 2 else ()
        return result == swapped and source[0] != source[1] and source[1] > 1
    return before[0] == 1 and result[0] == source[1] != source[0] and source[0] > 1


class _Watcher:
    """Takes down, during a run of the copy, what recurrent layers, attention and views do to the sample."""

    def __init__(self, scene: Scene, copy: Any, at: int) -> None:
        self._scene = scene
        self._at = at
        self._copy = copy
        self._passages: list[Passage] = []
        self._handles: list[Any] = []

    def __enter__(self) -> _Watcher:
        nn = self._scene.torch.nn
        for layer in self._copy.modules():
            if isinstance(layer, nn.RNNBase | nn.MultiheadAttention):
                self._handles.append(layer.register_forward_hook(self._called))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def taken(self) -> list[Passage]:
        """Return what was taken down since the last call."""
        passages, self._passages = self._passages, []
        return passages

    def _called(self, layer: Any, args: tuple[Any, ...], result: Any) -> None:
        tensor = self._scene.torch.Tensor
        result = result[0] if isinstance(result, tuple) else result
        source = args[0] if args else None
        if isinstance(source, tensor) and isinstance(result, tensor) and source.dim() == result.dim() == 3:
            kinds = (base for base in type(layer).__mro__ if base.__module__.startswith("torch.nn.modules"))
            kind = next(kinds).__name__
            right = layer.batch_first and source.shape[0] == self._at + 1
            if right:
                source, result = source.transpose(0, 1), result.transpose(0, 1)
            if source.shape[0] > 1 and source.shape[1] > 1:
                self._take(kind, self._scene.site(), source, result)

    def functions(self) -> Any:
        """Return what watches the functions of torch that the user's own code calls."""
        torch, watcher = self._scene.torch, self
        views = {torch.Tensor.view: "view", torch.Tensor.reshape: "reshape", torch.reshape: "reshape"}

        class Views(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
            def __torch_function__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
                result = function(*args, **(kwargs or {}))
                if function in views:
                    frame = sys._getframe(1)
                    if watcher._scene.sites.kind(frame.f_code) == 0:
                        watcher._take(views[function], watcher._scene.sites.at(frame), args[0], result)
                return result

        return Views()

    def _take(self, kind: str, site: Site | None, source: Any, result: Any) -> None:
        if len(self._passages) >= _MOST_PASSAGES:
            raise Refused("it is too long to look through")
        shapes = tuple(source.shape), tuple(result.shape)
        passage = Passage(kind, site, shapes)
        passage.before, passage.after = self._parts(source), self._parts(result)
        self._passages.append(passage)

    def _parts(self, tensor: Any) -> dict[int, Any]:
        """Return what lies at the place of the sample, along every dimension that is as long as the batch."""
        if not tensor.numel() or tensor.is_complex():
            return {}
        lengths = enumerate(tensor.shape)
        return {n: tensor.select(n, self._at).clone() for n, length in lengths if length == self._at + 1}
