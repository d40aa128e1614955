"""Corrupted samples that a model in training is called on, and compared with: it learns to keep the noise.

The samples before the noise are another variable, read for the corrupted ones alone. The same sample must come again
with other noise: a sample that was measured once has the same noise each time, without a clean version of it.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from truestep.events import NoiseKept, Site
from truestep.probes.active import restored_states
from truestep.probes.active.noise.corruption import corruption, is_dequantised
from truestep.probes.active.noise.differences import difference_below
from truestep.probes.active.noise.unused import only_makes
from truestep.probes.active.trial import Trial, own
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.copies.call import Call, Path, called
from truestep.probes.copies.objects import Refused, copy_of
from truestep.probes.variables.origins import loss_made_at, place_of, stored_by
from truestep.seams.refs import Ref

_LOSSES = frozenset(
    ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits")
)
_SEED = 5_219_377
_LARGEST = 1 << 20
_LEAST_ROWS = 8
_LEAST_STEPS = 3
_LEAST_AGAIN = 8
_MOST_KEPT = 1 << 14
_MOST_MODELS = 8
_MOST_FRAMES = 3
_MOST_ALIKE = 8


@dataclass(slots=True)
class _Called:
    """A call of training."""

    module: Ref
    model: int
    call: Call
    values: dict[Path, tuple[Any, int]]
    """Arguments with the numbers of their versions."""
    result: Any
    """Values of the result; None if it is not one tensor."""


@dataclass(slots=True)
class _Seen:
    """The samples of one model, in the sampled steps so far."""

    how: str
    loss: Site | None
    made: Site | None
    name: str
    steps: int = 0
    again: int = 0
    """Samples that came again with other noise."""
    clean: set[bytes] = field(default_factory=set)
    given: set[bytes] = field(default_factory=set)
    """Samples with noise."""


class KeptNoise:
    """Yields `NoiseKept`.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are computed.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._calls: list[_Called] = []
        """Calls since the latest loss."""
        self._seen: dict[int, _Seen] = {}
        self._found: dict[int, _Seen] = {}
        self._done: set[int] = set()
        self._latest = -1, 0
        """Step and model of the latest loss."""

    def returned(self, module: Any, model: int, frame: FrameType, result: Any) -> None:
        """Keep the arguments of a call in training that has returned."""
        torch = self._scene.torch
        with contextlib.suppress(Refused), self._unseen():
            call = called(module, frame)
            values = {
                path: (value.detach(), value._version)
                for path, value in call.tensors(torch).items()
                if _may_be_read(value)
            }
            whole = result.detach() if type(result) is torch.Tensor else None
            self._calls = [*self._calls[-1:], _Called(Ref(module), model, call, values, whole)]

    def computed(self, kind: str, site: Site | None, target: Any) -> None:
        """Handle a loss of training, with its target."""
        made = self._alone()
        if made is not None:
            with self._unseen():
                path = self._path(made, target) if kind in _LOSSES else None
            self._compare(made, site, path)

    def differentiated(self, node: Any, site: Site | None) -> None:
        """Handle a backward pass, before it runs: of a loss that the program computes by hand."""
        if not self._calls:
            return
        made, difference = self._alone(), difference_below(node)
        if made is None or made.result is None or difference is None:
            return
        with self._unseen():
            path = self._path_of(made, difference)
        if path is None:
            self._give_up(made.model)
        else:
            self._compare(made, loss_made_at(self._scene, self._scene.sites.own(1), site), path)

    def _path_of(self, made: _Called, difference: Any) -> Path | None:
        """Return the argument that the result differs from by these values."""
        result = made.result.reshape(-1)
        for path, (value, version) in made.values.items():
            if value._version == version and value.numel() == result.numel() == difference.numel():
                other = result - value.reshape(-1)
                if any(self._scene.torch.equal(one, difference.reshape(-1)) for one in (other, -other)):
                    return path
        return None

    def _unseen(self) -> AbstractContextManager[object]:
        """Return the context manager in which modes of the program do not see what is read."""
        return self._scene.unseen.begin() or contextlib.nullcontext()

    def _alone(self) -> _Called | None:
        """Return the only call since the latest loss; of several, it is not known which one a loss belongs to."""
        calls, self._calls = self._calls, []
        (before, latest), step = self._latest, self._scene.sampling.step
        models = [one.model for one in calls]
        if before == step and models != [latest]:  # a second loss, of the same result or of one that is made of it
            self._give_up(latest, *models)
        if len(calls) != 1:
            self._give_up(*models)
            return None
        made = calls[0]
        self._latest = step, made.model
        many = len(self._done | self._seen.keys() | {made.model}) > _MOST_MODELS
        return None if made.model in self._done or many else made

    def _compare(self, made: _Called, site: Site | None, path: Path | None) -> None:
        """Handle a loss of one call, with the argument that is its target."""
        frame = self._scene.sites.own(1)
        if path is None or frame is None:
            self._give_up(made.model)
            return
        try:
            with self._unseen(), self._aside():
                self._look(made, path, site, frame)
        except Refused:
            self._give_up(made.model)

    def _path(self, made: _Called, target: Any) -> Path | None:
        """Return the argument that is the target; None if there is none, or the target has a gradient."""
        torch = self._scene.torch
        if not _may_be_read(target):
            return None
        for path, (value, version) in made.values.items():
            if value._version != version or value.numel() != target.numel() or value.dtype != target.dtype:
                continue
            if torch.equal(value.reshape(-1), target.detach().reshape(-1)):
                return path
        return None

    def _look(self, made: _Called, path: Path, site: Site | None, frame: FrameType) -> None:
        """Look for the samples without noise, among the variables of the program."""
        torch, given = self._scene.torch, made.values[path][0]
        for holder in self._scene.sites.users(frame)[:_MOST_FRAMES]:
            every: dict[str, Any] = variables(holder)
            names = {name: one for name, one in every.items() if self._is_alike(one, given)}
            same = {name for name, one in names.items() if torch.equal(one.detach().reshape(given.shape), given)}
            others = sorted(names.keys() - same)[:_MOST_ALIKE]
            if any(is_dequantised(given, names[name].detach().reshape(given.shape)) for name in others):
                break
            for name in others:
                clean = names[name].detach().reshape(given.shape)
                how = corruption(torch, given.flatten(1).cpu(), clean.flatten(1).cpu())
                if not how:
                    continue
                aliases = {other for other in names.keys() - same if names[other] is names[name]}
                if not only_makes(holder, aliases, same):
                    self._give_up(made.model)
                    return
                self._add(made, path, clean, how, _Seen(how, site, _made_at(holder, same), name))
                return
        self._give_up(made.model)

    def _is_alike(self, value: Any, given: Any) -> bool:
        """Return True for a variable that may hold the samples of an input."""
        kind = self._scene.torch.Tensor
        if type(value) is not kind or value.dtype != given.dtype or value.numel() != given.numel():
            return False
        return bool(_may_be_read(value) and len(value) == len(given) and value.device == given.device)

    def _add(self, made: _Called, path: Path, clean: Any, how: str, first: _Seen) -> None:
        """Compare the noise of samples with that of the same samples in earlier steps."""
        seen = self._seen.setdefault(made.model, first)
        given = made.values[path][0]
        cleans, givens = _keys(clean), _keys(given)
        fixed = not seen.given.isdisjoint(givens)  # measured once, or drawn from one seed
        if fixed or seen.how != how or seen.loss != first.loss or len(set(cleans)) < len(cleans) // 2:
            self._give_up(made.model)
            return
        seen.steps += 1
        seen.again += sum(key in seen.clean for key in cleans)
        if len(seen.clean) < _MOST_KEPT:
            seen.clean.update(cleans)
            seen.given.update(givens)
        if seen.steps >= _LEAST_STEPS and seen.again >= _LEAST_AGAIN and made.model not in self._found:
            if self._reads(made, path):
                self._found[made.model] = seen
            else:
                self._give_up(made.model)

    def _reads(self, made: _Called, path: Path) -> bool:
        """Return True if the result of a copy at a place depends on the argument there: not of a blind spot."""
        module, torch = made.module(), self._scene.torch
        if module is None:
            raise Refused("it does not exist any more")
        given = made.values[path][0]
        rows = torch.arange(len(given), device=given.device)
        places = rows * 37 % (given.numel() // len(given))
        with restored_states.kept(torch):
            trial = Trial(
                self._scene,
                copy_of(module, self._scene),
                Call(own(made.call.args, torch), own(made.call.kwargs, torch)),
            )
            other = given.clone().reshape(len(given), -1)
            other[rows, places] += other.std()
            plain = trial.run(_SEED)
            changed = trial.run(_SEED, trial.call.replaced({path: other.reshape(given.shape)}))
        for one, two in zip(plain, changed, strict=True):
            if one.numel() == two.numel() == given.numel():
                difference = (one - two).reshape(len(given), -1)[rows, places].abs()
                return bool((difference > 1e-5 * one.std()).double().mean() > 0.5)
        return False

    def last(self) -> Iterator[NoiseKept]:
        """Yield the models that learn to keep noise, at the end of the run."""
        for model, seen in self._found.items():
            yield NoiseKept(
                model=model, how=seen.how, site=seen.loss, made=seen.made, clean=seen.name, samples=seen.again
            )

    def _give_up(self, *models: int) -> None:
        for model in models:
            self._done.add(model)
            self._seen.pop(model, None)
            self._found.pop(model, None)


def _may_be_read(value: Any) -> bool:
    plain = value.is_floating_point() and not value.requires_grad and value.dim() >= 2
    return bool(plain and len(value) >= _LEAST_ROWS and value.numel() <= _LARGEST and has_values(value))


def _keys(value: Any) -> list[bytes]:
    """Return a number for the values of each row."""
    rows = value.flatten(1).double().cpu().numpy()
    return [hashlib.blake2b(one.tobytes(), digest_size=12).digest() for one in rows]


def _made_at(frame: FrameType, names: set[str]) -> Site | None:
    """Return the line that makes the corrupted samples."""
    for name in sorted(names):
        statement = stored_by(frame, name)
        if statement is not None and hasattr(statement, "value"):
            return place_of(frame.f_code, statement.value)
    return None
