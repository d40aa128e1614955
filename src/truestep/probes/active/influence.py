"""Checks: samples and masks without influence on the result of a model, and draws of random numbers in eval mode."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from truestep.events import Site
from truestep.probes.active.samples import differ
from truestep.probes.active.trial import Trial
from truestep.probes.copies.call import Call, Path, name_of
from truestep.probes.copies.objects import Refused

_SEEDS = (2_345_671, 7_654_312)
_LEAST_SAMPLES = 4
_LEAST_PADDED = 4
_FLAGS = 2
_MOST_MASKS = 4


@dataclass(frozen=True, slots=True)
class Draws:
    """Result of repeating a call with another seed."""

    differ: bool = False
    cause: str = ""
    """Function that drops values in eval mode: "attention", "module" (a layer made for the call), or empty."""
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class Influence:
    """Arguments without influence on the result."""

    inputs: tuple[str, ...] = ()
    """Names of the arguments that were checked."""
    without: tuple[str, ...] = ()
    """Names of those without influence, in eval and in train mode."""
    padding: tuple[str, ...] = ()
    """Names of masks without influence at positions that have influence, although they hold padding."""
    lost: bool = False
    """True if the results depend on some samples of the batch, but not on others."""


def draws(trial: Trial) -> Draws:
    """Return the result of two calls with different seeds in eval mode.

    Raises:
        Refused: the copy cannot be called.
    """
    found: list[tuple[str, Site | None]] = []
    one = trial.run(_SEEDS[0])
    if same(one, trial.run(_SEEDS[1])):
        return Draws()
    if not same(one, trial.run(_SEEDS[0])):
        raise Refused("its results for the same batch and seed differ")
    trial.run(_SEEDS[0], mode=_dropping(trial, found))
    return Draws(True, *found[0]) if found else Draws(True)


def _dropping(trial: Trial, found: list[tuple[str, Site | None]]) -> Any:
    """Return a torch function mode that records functions which drop values."""
    torch, scene = trial.scene.torch, trial.scene
    functional = torch.nn.functional
    own = set(map(id, trial.copy.modules()))

    class Dropping(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        def __torch_function__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if function is functional.scaled_dot_product_attention:
                if (args[4] if len(args) > 4 else kwargs.get("dropout_p", 0.0)) > 0:
                    found.append(("attention", scene.site()))
            elif function is functional.dropout and kwargs.get("training", True) and kwargs.get("p", 0.5) > 0:
                owner = _layer(torch)
                if owner is not None and id(owner) not in own:
                    found.append(("module", scene.site()))
            return function(*args, **kwargs)

    return Dropping()


def _layer(torch: Any) -> Any:
    """Return the dropout layer that called the function of a mode; None without one."""
    frame = sys._getframe(2)
    for _ in range(4):
        owner = frame.f_locals.get("self") if frame.f_code.co_name == "forward" else None
        if isinstance(owner, torch.nn.modules.dropout._DropoutNd):
            return owner
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


def influence(trial: Trial) -> Influence:
    """Return the arguments without influence.

    Raises:
        Refused: the copy cannot be called, or its results are random.
    """
    torch, call = trial.scene.torch, trial.call
    plain = trial.run(_SEEDS[0])
    if not same(plain, trial.run(_SEEDS[0])):
        raise Refused("its results for the same batch and seed differ")
    inputs: list[str] = []
    without: list[str] = []
    padding: list[str] = []
    tensors = call.tensors(torch)
    for path, value in list(tensors.items())[1:]:
        if len(inputs) == _MOST_MASKS or not is_mask(value, torch):
            continue
        name = name_of(path, trial.copy)
        inputs.append(name)
        other = call.replaced({path: ~value if value.dtype is torch.bool else 1 - value})
        if not same(plain, trial.run(_SEEDS[0], other)) or not same_in_training(trial, other):
            continue
        without.append(name)
        if _padding_matters(trial, value, tensors, plain):
            padding.append(name)
    return Influence(tuple(inputs), tuple(without), tuple(padding), _samples_lost(trial, plain))


def is_mask(value: Any, torch: Any) -> bool:
    """Return True if a tensor marks some positions of sequences, and not others."""
    if value.layout is not torch.strided or value.dim() != _FLAGS or value.shape[0] < _FLAGS:
        return False
    if not bool(((value == 0) | (value == 1)).all()):
        return False
    return value.dtype in (torch.bool, torch.float32, torch.int64) and bool(value.any()) and not bool(value.all())


def same_in_training(trial: Trial, other: Call, seed: int = _SEEDS[0]) -> bool:
    """Return True if a call in train mode gives the same results with other arguments."""
    buffers = [(buffer, buffer.clone()) for buffer in trial.copy.buffers()]
    for part in trial.copy.modules():
        part.training = True
    try:
        one = trial.run(seed)
        _restore(buffers)
        two = trial.run(seed, other)
    finally:
        _restore(buffers)
        for part in trial.copy.modules():
            part.training = False
    return same(one, two)


def _restore(buffers: list[tuple[Any, Any]]) -> None:
    for buffer, value in buffers:
        buffer.detach().copy_(value)


def _padding_matters(trial: Trial, mask: Any, tensors: dict[Path, Any], plain: list[Any]) -> bool:
    """Return True if values at the positions of padding, which a mask marks, change the results of real positions."""
    torch, changed, padded = trial.scene.torch, {}, None
    for path, value in tensors.items():
        if value is mask or value.shape[:2] != mask.shape:
            continue
        for flag in (0, 1):
            there = mask == flag
            held = value[there]
            if len(held) >= _LEAST_PADDED and bool((held == held[0]).all()) and not bool((value == held[0]).all()):
                real = value[~there]
                changed[path] = value.clone()
                changed[path][there] = real[torch.arange(len(held), device=value.device) % len(real)]
                padded = there
                break
    if padded is None:
        return False
    other = trial.run(_SEEDS[0], trial.call.replaced(changed))
    for one, two in zip(plain, other, strict=False):
        if one.shape != two.shape or not one.dim() or one.shape[0] != len(padded):
            continue
        if one.dim() > 1 and one.shape[1] == padded.shape[1]:
            one, two = one[~padded], two[~padded]
        if differ(one, two, one):
            return True
    return False


def _samples_lost(trial: Trial, plain: list[Any]) -> bool:
    """Return True if the results depend on the first sample, and not on the last nor on one in the middle."""
    samples, rows = trial.call.rows(trial.scene.torch)
    strided = all(value.layout is trial.scene.torch.strided for value in rows.values())
    if samples < _LEAST_SAMPLES or not strided or not any(one.dim() and one.shape[0] == samples for one in plain):
        return False

    def changes(at: int, by: int) -> bool:
        """Return True if another sample at a place changes any result."""
        values = {}
        for path, value in rows.items():
            values[path] = value.clone()
            values[path][at] = value[by]
        if all(bool((values[path] == value).all()) for path, value in rows.items()):
            raise Refused("samples of the batch are equal")
        return not same(plain, trial.run(_SEEDS[0], trial.call.replaced(values)))

    return not changes(samples - 1, 0) and not changes(samples // 2, 0) and changes(0, samples - 1)


def same(one: list[Any], two: list[Any]) -> bool:
    """Return True if two runs have the same results to the last bit."""
    return len(one) == len(two) and all(
        a.shape == b.shape and bool((a == b).all()) for a, b in zip(one, two, strict=True)
    )
