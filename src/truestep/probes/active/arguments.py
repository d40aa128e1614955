"""Check: an argument of a model has no influence on its results, and the place where its influence ends."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from truestep.events import Site
from truestep.probes.active.branches import loads, reads
from truestep.probes.active.influence import is_mask, same, same_in_training
from truestep.probes.active.trial import Trial
from truestep.probes.context.scene import Scene
from truestep.probes.copies.call import Call, Path, name_of
from truestep.probes.copies.objects import Refused

_SEED = 2_345_671
_OTHER_SEEDS = tuple(range(31, 39))
"""A model can use an argument at random, such as the tokens of a decoder in one of two batches."""
_MOST_ARGUMENTS = 8
_MOST_OPERATIONS = 2000
_DEEP = 3
_LEAST = 4
"""Least number of samples, of positions, and of places of padding."""
_VARIED = 0.2
"""Least share of values that differ from those of the sample before."""
_DIRECT = 2
"""Length of the path of an argument itself, which is not inside of another."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments with influence on the result, and without."""

    alive: tuple[str, ...] = ()
    dead: tuple[str, ...] = ()
    """Names of those that the model's `forward` reads, or takes beside one of the same shape, without influence in eval
    and in train mode."""
    ends: Site | None = None
    """Line of the last operation that the first of these reaches, with a result that it does not change."""


@dataclass(frozen=True, slots=True)
class Positions:
    """An argument with sequences of which most positions have no influence on the results."""

    first: str = ""
    """Its name if the results depend on its first position, and on no other."""
    unused: bool = False
    """True if results of operations over all positions reach this line, and only those of the first one pass it."""
    only_padding: str = ""
    """Its name if the results depend on its padding, and on no other token."""
    ends: Site | None = None
    """Line at which the influence of the other positions ends."""


def arguments(trial: Trial) -> Arguments:
    """Return the influence of each argument with several values, one at a time.

    Raises:
        Refused: the copy cannot be called, or its results are random.
    """
    torch, call = trial.scene.torch, trial.call
    tensors = call.tensors(torch)
    if len(tensors) < 2:
        return Arguments()
    plain = trial.run(_SEED)
    if not same(plain, trial.run(_SEED)):
        raise Refused("its results for the same batch and seed differ")
    alive: list[str] = []
    dead: list[tuple[str, Path, Any]] = []
    for path, value in list(tensors.items())[:_MOST_ARGUMENTS]:
        for other in _changed(value, torch):
            changed = call.replaced({path: other})
            try:
                without = same(plain, trial.run(_SEED, changed)) and all(
                    same_in_training(trial, changed, seed) for seed in _OTHER_SEEDS
                )
            except Refused:  # the other values are not valid, such as offsets in another order
                continue
            if without:
                dead.append((name_of(path, trial.copy), path, other))
            else:
                alive.append(name_of(path, trial.copy))
            break
    dead = [one for one in dead if _is_read(one[1], trial.copy) or _is_one_of_several(one[1], alive, trial)]
    if not alive or not dead:
        return Arguments(tuple(alive))
    _, path, other = dead[0]
    return Arguments(tuple(alive), tuple(name for name, _, _ in dead), _end(trial, path, other)[1])


def positions(trial: Trial) -> Positions:
    """Return the argument with sequences of which only the first position, or only the padding, has influence.

    Raises:
        Refused: the copy cannot be called.
    """
    torch, call = trial.scene.torch, trial.call
    path, value = next(iter(call.tensors(torch).items()))
    tokens = value.dim() == 2 and value.dtype in (torch.int64, torch.int32)
    if not (tokens or (value.dim() == 3 and value.is_floating_point())):
        return Positions()
    if min(value.shape[:2]) < _LEAST or value.layout is not torch.strided:
        return Positions()
    plain, name = trial.run(_SEED), name_of(path, trial.copy)

    def changes(other: Any) -> bool:
        """Return True if another value changes any result."""
        return not same(plain, trial.run(_SEED, call.replaced({path: other})))

    later, first = value.roll(1, 0), value.clone()
    later[:, 0], first[:, 0] = value[:, 0], value.roll(1, 0)[:, 0]
    if float((later != value)[:, 1:].float().mean()) > _VARIED and not changes(later) and changes(first):
        place, ends = _end(trial, path, later)
        unused = place is not None and _drops(trial, place, call.replaced({path: first}))
        return Positions(first=name, unused=unused, ends=ends)
    padded = _padded(trial, value) if tokens else None
    if padded is None:
        return Positions()
    real, swapped, filled = value[~padded], value.clone(), value.clone()
    swapped[~padded] = real.roll(1)
    filled[padded] = real[torch.arange(int(padded.sum()), device=value.device) % len(real)]
    if bool((swapped != value).any()) and not changes(swapped) and changes(filled):
        return Positions(only_padding=name)
    return Positions()


def _padded(trial: Trial, tokens: Any) -> Any:
    """Return the places of padding at the ends of rows; None if there are few, or if nothing else is there."""
    embeddings = [one for one in trial.copy.modules() if isinstance(one, trial.scene.torch.nn.Embedding)]
    for index in {one.padding_idx for one in embeddings if one.padding_idx is not None}:
        padded = tokens == index
        ends = bool((padded[:, 1:] >= padded[:, :-1]).all())
        if ends and min(int(padded.sum()), int((~padded).sum())) >= _LEAST:
            return padded
    return None


def _changed(value: Any, torch: Any) -> Iterator[Any]:
    """Yield other values for an argument, which are among its own; none if it has one value, or is a mask."""
    if value.layout is not torch.strided or value.dtype is torch.bool or not bool(torch.isfinite(value).all()):
        return
    low, high = value.aminmax()
    if bool(low == high) or is_mask(value, torch) or _is_triangular(value, torch):
        return
    if value.is_floating_point():
        other = value.flatten().flip(0).reshape(value.shape)
        yield torch.where(value == high, low, high) if bool((other == value).all()) else other
        return
    if value.is_cpu:  # elsewhere an index out of range would end the program
        yield torch.where(value == high, low, high)
    longest = max(range(value.dim()), key=lambda dim: value.shape[dim])
    other = value.roll(1, longest)  # columns of categories keep their ranges
    if not bool((other == value).all()):
        yield other


def _is_triangular(value: Any, torch: Any) -> bool:
    """Return True for a causal mask, which a function can replace by a flag."""
    if value.dim() < 2 or value.shape[-1] != value.shape[-2] or value.shape[-1] < 2:
        return False
    above, right = torch.triu_indices(value.shape[-1], value.shape[-1], 1, device=value.device)
    halves = value[..., above, right], value[..., right, above]
    return any(bool((half == half.flatten()[0]).all()) for half in halves)


def _is_read(path: Path, module: Any) -> bool:
    """Return True if `forward` names the argument itself: some models take one only for a common signature.

    A read in a branch of an option that is off does not count: the program chose a model without it.
    """
    forward = getattr(type(module), "forward", None)
    if not isinstance(forward, FunctionType) or len(path) != _DIRECT:  # a batch can hold more than a model uses
        return False
    return name_of(path, module) in reads(forward, module)


def _is_one_of_several(path: Path, alive: list[str], trial: Trial) -> bool:
    """Return True if `forward` takes numbers in the shape of another argument, which has influence, without a default.

    Other classes of the file with these arguments are models of one signature, which may use a part of them.
    """
    forward, tensors = getattr(type(trial.copy), "forward", None), trial.call.tensors(trial.scene.torch)
    value = tensors[path]
    if not isinstance(forward, FunctionType) or len(path) != _DIRECT or not value.is_floating_point():
        return False
    taken = _taken(forward)
    required = taken[: len(taken) - len(forward.__defaults__ or ())]
    name = name_of(path, trial.copy)
    if name not in required or name.startswith("_") or name in forward.__code__.co_cellvars or name in loads(forward):
        return False
    alike = (
        other.shape == value.shape and other.dtype is value.dtype and not bool((other == value).all())
        for there, other in tensors.items()
        if name_of(there, trial.copy) in alive
    )
    module, known = trial.scene.torch.nn.Module, list(forward.__globals__.values())
    others = (one for one in known if isinstance(one, type) and issubclass(one, module))
    same_signature = (
        isinstance(run := vars(one).get("forward"), FunctionType) and run is not forward and _taken(run) == taken
        for one in others
    )
    return value.dim() > 1 and any(alike) and not any(same_signature)


def _taken(forward: FunctionType) -> tuple[str, ...]:
    """Return the names of the arguments, without the first."""
    return forward.__code__.co_varnames[1 : forward.__code__.co_argcount]


# --- the place where the influence ends ------------------------------------------------------------------------


def _end(trial: Trial, path: Path, other: Any) -> tuple[int | None, Site | None]:
    """Return number and line of the last operation that gets other values and returns the same.

    Without one, return the line of the last layer that gets them.
    """
    one, two, changed = _Passages(trial.scene), _Passages(trial.scene), trial.call.replaced({path: other})
    trial.run(_SEED, mode=one.functions())
    trial.run(_SEED, changed, mode=two.functions())
    place, last = None, None
    for number, (before, after) in enumerate(zip(one.seen, two.seen, strict=False)):
        (kind, given, result, _), (kind_, given_, result_, site) = before, after
        if kind != kind_:
            break
        if given != given_ and result == result_:
            place, last = number, site
    if last is None:
        with two.layers(trial.copy, other):
            trial.run(_SEED, changed)
    return place, last or two.layer


def _drops(trial: Trial, place: int, other: Call) -> bool:
    """Return True if an operation gets more values that change with an argument than it passes on.

    Args:
        trial: a copy of the model.
        place: number of the operation.
        other: the call with another first position.
    """
    one, two = _Passages(trial.scene, place), _Passages(trial.scene, place)
    trial.run(_SEED, mode=one.functions())
    trial.run(_SEED, other, mode=two.functions())
    given, made = (
        sum(int((a != b).sum()) for a, b in zip(*pair, strict=False) if a.shape == b.shape)
        for pair in zip(one.held, two.held, strict=True)
    )
    return given > made


class _Passages:
    """Digests of the tensors before and after each operation of a run.

    Args:
        scene: the scene.
        place: number of an operation with tensors to keep.
    """

    def __init__(self, scene: Scene, place: int | None = None) -> None:
        self._scene = scene
        self._place = place
        self.held: tuple[list[Any], list[Any]] = ([], [])
        """Tensors before and after the operation at this place."""
        self.seen: list[tuple[Any, tuple[bytes, ...], tuple[bytes, ...], Site | None]] = []
        self.layer: Site | None = None
        """First line of the latest layer of the program that got the argument."""

    def functions(self) -> Any:
        """Return a torch function mode that records operations."""
        torch, me = self._scene.torch, self

        class Operations(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
            def __torch_function__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
                if len(me.seen) >= _MOST_OPERATIONS:
                    return function(*args, **(kwargs or {}))
                given = me._digests((args, kwargs))
                result = function(*args, **(kwargs or {}))
                after = me._digests(result)
                if after:
                    if len(me.seen) == me._place:
                        me.held = me._tensors(args), me._tensors(result)
                    me.seen.append((function, given, after, me._scene.site()))
                return result

        return Operations()

    @contextlib.contextmanager
    def layers(self, copy: Any, value: Any) -> Iterator[None]:
        """Context manager: record the layers of the program that get a value."""
        wanted = self._digests(value)

        def called(layer: Any, args: Any, kwargs: Any) -> None:
            forward = getattr(type(layer), "forward", None)
            own = isinstance(forward, FunctionType) and self._scene.sites.kind(forward.__code__) == 0
            if own and any(self._digests(part) == wanted for part in (*args, *kwargs.values())):
                code = forward.__code__  # type: ignore[union-attr]
                self.layer = Site(path=code.co_filename, line=code.co_firstlineno, function=code.co_name)

        handles = [layer.register_forward_pre_hook(called, with_kwargs=True) for layer in copy.modules()]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _tensors(self, value: Any) -> list[Any]:
        """Return copies of a tensor, or of those in a sequence."""
        parts = value if isinstance(value, tuple | list) else (value,)
        return [part.detach().clone() for part in parts if isinstance(part, self._scene.torch.Tensor)]

    def _digests(self, value: Any, depth: int = 0) -> tuple[bytes, ...]:
        """Return a digest of each tensor in a value."""
        torch = self._scene.torch
        if isinstance(value, torch.Tensor):
            if value.layout is not torch.strided or value.is_complex():
                return ()
            flat = value.detach().reshape(-1).contiguous().view(torch.uint8).cpu()
            return (hashlib.blake2b(flat.numpy().tobytes(), digest_size=16).digest(),)
        if isinstance(value, dict):
            value = list(value.values())
        if depth >= _DEEP or not isinstance(value, list | tuple):
            return ()
        return tuple(digest for item in value for digest in self._digests(item, depth + 1))


def numbers_first(given: tuple[Any, ...], torch: Any) -> tuple[Any, ...]:
    """Return arguments with the features before the categories: numbers with decimals tell rows apart, codes seldom.

    Args:
        given: the arguments of a call.
        torch: the module.
    """
    if len(given) < 2 or type(given[0]) is not torch.Tensor or given[0].is_floating_point() or given[0].dim() > 2:
        return given
    first = given[0]
    for one in given[1:]:
        features = type(one) is torch.Tensor and one.is_floating_point() and one.dim() == 2 and one.shape[1] > 1
        if features and one.shape[:1] == first.shape[:1] and not one.requires_grad:
            return (one, *(other for other in given if other is not one))
    return given
