"""Check: the result for one sample depends on the other samples of its batch, and the operation that causes it.

The copy runs twice: with the batch, and with a batch in which all other samples are replaced by the checked one. The
values of that sample must be the same in both runs, along the dimension of the samples. Behind a mistake, the sample
gets its values of the first run again, so that another mistake shows.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import Any

from truestep.events import Site
from truestep.probes.active.over_samples import ByPlace, OverSamples, mixing
from truestep.probes.active.repeats import Repeats, crossed
from truestep.probes.active.trial import Trial
from truestep.probes.backward.views import scrambles
from truestep.probes.context.scene import Scene
from truestep.probes.copies.call import Call, Path
from truestep.probes.copies.objects import Refused
from truestep.probes.gradients.gradient_states import as_real

_SEED = 1_234_567
_MOST_PASSAGES = 200
_NORMALISING = ("softmax", "log_softmax", "normalize")
_OF_SIZE = 1e-4
_OF_SPREAD = 1e-2


@dataclass(slots=True)
class Passage:
    """One operation on the samples, with the values of the checked sample before and after it."""

    kind: str
    site: Site | None
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    before: dict[int, Any] = field(default_factory=dict)
    """Dimension with the length of the batch, to the slice of the input at the index of the sample."""
    after: dict[int, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mixing:
    """Result of the check: True if samples are mixed, with the cause and its line."""

    mixed: bool = False
    cause: str = ""
    """"batch_first", "view", "softmax", "operation", "repeat" or "place"; empty if the cause is unknown."""
    kind: str = ""
    site: Site | None = None
    shapes: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    number: int = -1
    """Number of its passage; -1 if it has none."""
    behind: Mixing | None = None
    """The first softmax over the samples behind a view that scrambles them."""


def compare(trial: Trial, samples: int, rows: dict[Path, Any]) -> Mixing:
    """Return the result of the check for a trial.

    Args:
        trial: a copy of the model.
        samples: number of samples in the batch.
        rows: arguments with one row for each sample.

    Raises:
        Refused: the check is not possible.
    """
    torch, at = trial.scene.torch, samples // 2
    if not any(bool((value != value[at]).any()) for value in rows.values()):
        raise Refused("all samples of the batch are equal")
    alike = trial.call.replaced({path: value[at : at + 1].expand_as(value) for path, value in rows.items()})
    watcher = _Watcher(trial.scene, trial.copy, samples, at)
    with watcher:
        (plain, *parts), first = _by_sample(trial.run(_SEED, mode=watcher.functions()), samples), watcher.taken()
        (same, *again), _ = _by_sample(trial.run(_SEED, mode=watcher.functions()), samples), watcher.taken()
        if plain.shape != same.shape or not torch.equal(plain, same):
            raise Refused("its results for the same batch differ")
        (other, *others), second = (
            _by_sample(trial.run(_SEED, alike, mode=watcher.functions()), samples),
            watcher.taken(),
        )
    if plain.shape != other.shape:
        raise Refused("its result has another shape for other samples")
    if not bool(torch.isfinite(plain).all() and torch.isfinite(other).all()):
        raise Refused("its result is not finite")
    found = _cause(first, second)
    # A view that scrambles samples is a mistake also where it has little influence, as in the first steps; so is a
    # softmax over them.
    little = found.cause in ("view", "softmax") and not torch.equal(plain[at], other[at])
    mixed = little or differ(plain[at], other[at], plain)
    mixed = mixed or any(
        one.shape == three.shape and _are_equal(torch, one, two) and differ(one[at], three[at], one)
        for one, two, three in zip(parts, again, others, strict=False)
        if samples not in one.shape[1:]  # scores of samples with one another
    )
    if mixed and not found.cause:
        record = OverSamples(trial.scene, samples, at)
        trial.run(_SEED, mode=record.mode())
        one = record.taken()
        trial.run(_SEED, alike, mode=record.mode())
        name, site = mixing(one, record.taken())
        found = Mixing(cause="operation" if name else "", kind=name, site=site)
    if mixed and not found.cause:
        found = _repeated(trial, alike, samples, at)
    if mixed and found.cause == "view":
        with watcher:
            found = replace(found, behind=_behind(trial, alike, watcher, first, found, plain))
    if mixed or found.cause == "batch_first":
        return replace(found, mixed=mixed)
    certain = not any(samples in value.shape[1:] for value in rows.values())
    return watcher.scrambled or (_placed(trial, alike, other, plain) if certain else Mixing())


def _behind(
    trial: Trial, alike: Call, watcher: _Watcher, first: list[Passage], view: Mixing, plain: Any
) -> Mixing | None:
    """Return the first softmax over the samples behind a view that scrambles them; None without one.

    Args:
        trial: a copy of the model.
        alike: its call on equal samples.
        watcher: records the operations.
        first: those of the call on the batch.
        view: the view.
        plain: the results of the samples of the batch.
    """
    watcher.restore(view.number, first[view.number])
    other = _by_sample(trial.run(_SEED, alike, mode=watcher.functions()), len(plain))[0]
    found = _cause(first, watcher.taken())
    mixed = found.cause == "softmax" and other.shape == plain.shape
    at = len(plain) // 2
    return replace(found, mixed=True) if mixed and differ(plain[at], other[at], plain) else None


def _repeated(trial: Trial, alike: Call, samples: int, at: int) -> Mixing:
    """Return the operation that repeats samples in another order than the rows that they are joined with."""
    record = Repeats(trial.scene, samples, at)
    trial.run(_SEED, mode=record.mode())
    one = record.taken()
    trial.run(_SEED, alike, mode=record.mode())
    name, site, times = crossed(one, record.taken())
    return Mixing(cause="repeat" if name else "", kind=name, site=site, shapes=((samples,), (samples * times,)))


def _placed(trial: Trial, alike: Call, other: Any, plain: Any) -> Mixing:
    """Return the operation that adds rows of a table to equal samples, if their results differ.

    Args:
        trial: a copy of the model.
        alike: its call on equal samples.
        other: their results.
        plain: the results of the samples of the batch.
    """
    if not differ(other, other[:1].expand_as(other), plain):
        return Mixing()
    record = ByPlace(trial.scene, trial.copy, len(plain))
    trial.run(_SEED, alike, mode=record.mode())
    return Mixing(mixed=True, cause="place", kind=record.table, site=record.site) if record.table else Mixing()


def scrambled(trial: Trial, samples: int) -> Mixing | None:
    """Return the first view that swaps dimensions within each sample; None without one.

    Args:
        trial: a copy of the model.
        samples: number of samples in the batch, which need not be independent of each other.
    """
    watcher = _Watcher(trial.scene, trial.copy, samples, samples // 2)
    with watcher:
        trial.run(_SEED, mode=watcher.functions())
    return watcher.scrambled


def _by_sample(results: list[Any], samples: int) -> list[Any]:
    """Return the results with one row for each sample.

    Raises:
        Refused: there are none.
    """
    found = [result for result in results if result.dim() and result.shape[0] == samples]
    if not found:
        raise Refused("its result has no row for each sample")
    return found


def _are_equal(torch: Any, one: Any, two: Any) -> bool:
    """Return True if two results are equal, and finite."""
    return one.shape == two.shape and torch.equal(one, two) and bool(torch.isfinite(one).all())


def differ(one: Any, two: Any, whole: Any) -> bool:
    """Return True if two results for a sample differ by more than rounding, relative to their size and spread."""
    if whole.is_complex():
        one, two, whole = as_real(one), as_real(two), as_real(whole)
    whole = whole.double()
    difference = float((one.double() - two.double()).abs().max())
    size, spread = float(whole.abs().max()), float((whole - whole.mean(0)).abs().max())
    return difference > max(_OF_SIZE * size, _OF_SPREAD * spread)


def _cause(first: list[Passage], second: list[Passage]) -> Mixing:
    """Return the first operation that mixes samples in a way that is known to be a mistake."""
    if [one.kind for one in first] != [two.kind for two in second]:
        return Mixing()
    right = False
    found = Mixing()
    for number, (one, two) in enumerate(zip(first, second, strict=True)):
        before, after = _kept(one.before, two.before), _kept(one.after, two.after)
        cause = ""
        if one.kind in ("view", "reshape"):
            cause = "view" if _scrambled(one, before, after) else ""
        elif one.kind in _NORMALISING:
            cause = "softmax" if before == [0] and not after else ""
        elif before == [0] and 0 in one.after and not after:
            cause = "batch_first"
        elif before == [1] and 1 in after and one.kind == "MultiheadAttention":
            right = True
        if cause and not found.cause:
            found = Mixing(cause=cause, kind=one.kind, site=one.site, shapes=one.shapes, number=number)
    if found.kind == "MultiheadAttention" and right:
        return Mixing()  # attention both over samples and within them is intended
    return found


def _kept(one: dict[int, Any], two: dict[int, Any]) -> list[int]:
    """Return the dimensions with equal slices of the sample in both runs."""
    kept = []
    for dimension, part in one.items():
        other = two.get(dimension)
        if other is not None and part.shape == other.shape and not differ(part, other, part.reshape(1, -1)):
            kept.append(dimension)
    return kept


def _over_samples(args: tuple[Any, ...], kwargs: dict[str, Any], samples: int) -> bool:
    """Return True if an operation over one dimension runs over the samples, of which each has several numbers."""
    source = args[0]
    dims = [kwargs["dim"]] if "dim" in kwargs else [one for one in args[1:] if type(one) is int]
    if len(dims) != 1 or type(dims[0]) is not int or source.dim() < 2 or source.shape[0] != samples:
        return False
    return dims[0] in (0, -source.dim()) and samples not in source.shape[1:] and source.shape[1:].numel() > 1


def _scrambled(passage: Passage, before: list[int], after: list[int]) -> bool:
    """Return True if a view changed the shape in a way that a transpose was intended, and so mixed the samples."""
    if len(before) != 1 or after:
        return False
    source, result = passage.shapes
    if before[0] == 0:
        swapped = (source[1], source[0], *source[2:]) if len(source) > 2 else ()
        return result == swapped and source[0] != source[1] and source[1] > 1
    return before[0] == 1 and result[0] == source[1] != source[0] and source[0] > 1


class _Watcher:
    """Records the operations of recurrent layers, attention and views on the sample, during a run of the copy."""

    def __init__(self, scene: Scene, copy: Any, samples: int, at: int) -> None:
        self._scene = scene
        self._samples = samples
        self._at = at
        self._copy = copy
        self.scrambled: Mixing | None = None
        """The first view that swaps dimensions within each sample."""
        self._passages: list[Passage] = []
        self._restored: dict[int, dict[int, Any]] = {}
        """Number of a passage to the values that its result gets at the index of the sample, by dimension."""
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
        self._handles.clear()

    def taken(self) -> list[Passage]:
        """Return the operations recorded since the last call."""
        passages, self._passages = self._passages, []
        return passages

    def restore(self, number: int, passage: Passage) -> None:
        """Give the sample its values after a passage again, in the runs to come."""
        self._restored[number] = passage.after

    def _called(self, layer: Any, args: tuple[Any, ...], result: Any) -> None:
        tensor = self._scene.torch.Tensor
        result = result[0] if isinstance(result, tuple) else result
        source = args[0] if args else None
        if isinstance(source, tensor) and isinstance(result, tensor) and source.dim() == result.dim() == 3:
            kinds = (base for base in type(layer).__mro__ if base.__module__.startswith("torch.nn.modules"))
            kind = next(kinds).__name__
            right = layer.batch_first and source.shape[0] == self._samples
            if right:
                source, result = source.transpose(0, 1), result.transpose(0, 1)
            if source.shape[0] > 1 and source.shape[1] > 1:
                self._take(kind, self._scene.site(), source, result)

    def functions(self) -> Any:
        """Return a torch function mode that records views and normalisations over the samples in the user's code."""
        torch, watcher = self._scene.torch, self
        views = {torch.Tensor.view: "view", torch.Tensor.reshape: "reshape", torch.reshape: "reshape"}
        homes = (torch, torch.Tensor, torch.nn.functional)
        normalising = {getattr(home, name): name for name in _NORMALISING for home in homes if hasattr(home, name)}

        class Views(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
            def __torch_function__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
                result = function(*args, **(kwargs or {}))
                if function in views:
                    frame = sys._getframe(1)
                    if watcher._scene.sites.kind(frame.f_code) == 0:
                        site = watcher._scene.sites.at(frame)
                        result = watcher._take(views[function], site, args[0], result)
                        watcher._swapped(views[function], site, args[0], result)
                elif function in normalising and args and _over_samples(args, kwargs or {}, watcher._samples):
                    watcher._take(normalising[function], watcher._scene.site(), args[0], result)
                return result

        return Views()

    def _swapped(self, kind: str, site: Site | None, source: Any, result: Any) -> None:
        """Record a view that swaps dimensions within each sample; not of a layer's numbers without positions."""
        shapes = tuple(source.shape), tuple(result.shape)
        samples = self._samples
        if self.scrambled is not None or not shapes[0] or not shapes[1] or {shapes[0][0], shapes[1][0]} != {samples}:
            return
        base = source._base
        # A linear layer over positions returns a view of (samples * positions, features).
        positions = base is None or base.dim() >= source.dim() or base.shape[0] != samples
        if positions and scrambles(*shapes):
            self.scrambled = Mixing(cause="view", kind=kind, site=site, shapes=shapes)

    def _take(self, kind: str, site: Site | None, source: Any, result: Any) -> Any:
        """Record an operation; return its result, with values that were to be restored."""
        if len(self._passages) >= _MOST_PASSAGES:
            raise Refused("it has too many operations to analyse")
        shapes = tuple(source.shape), tuple(result.shape)
        restored = self._restored.get(len(self._passages))
        if restored is not None:
            result = result.clone()
            for dimension, values in restored.items():
                result.select(dimension, self._at).copy_(values)
        passage = Passage(kind, site, shapes)
        passage.before, passage.after = self._parts(source), self._parts(result)
        self._passages.append(passage)
        return result

    def _parts(self, tensor: Any) -> dict[int, Any]:
        """Return the slices at the index of the sample, for every dimension with the length of the batch."""
        if not tensor.numel() or tensor.is_complex():
            return {}
        lengths = enumerate(tensor.shape)
        return {n: tensor.select(n, self._at).clone() for n, length in lengths if length == self._samples}
