"""Samples shared by training and evaluation: compared by their indices in the same data set, or by their values.

A loader counts as used for training if an optimizer stepped after one of its batches was drawn with gradients enabled.
A batch that is only looked at before the training, as in ``for x, y in test_loader: break``, does not count: another
loader was read after it, no model was called in between, and the iterator is gone.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from truestep.probes.active import restored_states
from truestep.probes.active.data_sets.contents import Changing, Contents, repeated
from truestep.probes.active.data_sets.drawn import Bases, Samples, common, count, together, without
from truestep.probes.context.scene import Scene
from truestep.probes.copies.objects import Refused
from truestep.seams.divided import part
from truestep.seams.refs import Ref

_MOST_LOADERS = 96
_MOST_MODELS = 16
_VALUES = 8
_LEAST_COPIES = 3


@dataclass(frozen=True, slots=True)
class Overlap:
    """Result for one loader of an evaluation, in numbers of samples."""

    samples: int = 0
    shared: int = 0
    """Samples of the evaluation that were also used to train these weights."""
    outside: int = 0
    """Samples of the evaluation that were never used for training in the run."""
    beyond: int = 0
    """Samples of the training that are not in the evaluation."""
    repeated: int = 0
    """Shared samples expected by chance, from the repeated samples within each side."""
    by_value: bool = False
    earlier: int = 0
    """Samples of the evaluation that these weights were trained on with optimizers that the program had before."""


class Trained:
    """Tracks the samples that are used for training."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._bases = Bases(scene)
        self._contents = Contents(scene, self._bases)
        self._pending: dict[int, Samples | None] = {}
        """Loaders drawn with gradients enabled since the latest step; None if their samples are unknown."""
        self._anew: dict[int, bool] = {}
        """Loader to True if it was first drawn with other weights than those evaluated last."""
        self._iterators: dict[int, Ref] = {}
        """Loader to the iterator of its latest batch since the latest step."""
        self._last = -1
        """The loader of the latest batch."""
        self._called: set[int] = set()
        """Loaders with a batch that was the latest at a call of a model since the latest step."""
        self._glimpsed: set[int] = set()
        """Loaders with a first batch that was only looked at."""
        self._at = -1
        self._optimizers = 0
        self._goes_on = False
        """Whether a new optimizer holds the weights that were evaluated last."""
        self._is_reset = False
        """Whether these weights were given other values since then, without a step."""
        self._met: dict[int, Samples] = {}
        self._why: dict[int, str] = {}
        """Loader to the reason why its samples are unknown."""
        self._latest = -1
        """The loader of the latest batch if a model was evaluated on it, else -1."""
        self._since: Samples = {}
        """The samples used to train the current weights, by one set of optimizers."""
        self._before: Samples = {}
        """The samples used to train the current weights by optimizers before these."""
        self._evaluated: tuple[weakref.ref[Any], int, list[float]] | None = None
        """The model evaluated last, the step of the evaluation, and some of its weights."""
        self._measured: list[weakref.ref[Any]] = []
        """The models evaluated since the latest step."""
        self._ever: Samples = {}
        """All samples used for training in the run."""
        self.loaders: set[int] = set()
        """All loaders used for training in the run."""
        self.beginnings = 0
        """Number of times that training started with other weights."""
        self.changes = 0
        """Number of times that the samples used for training changed."""
        self.unknown = ""
        """Reason why the samples used for training are unknown, or empty."""

    def drawn(self, loader: int, iterator: Any) -> None:
        """Record that a loader returned a batch."""
        step = self._step()
        if step != self._at:
            self._promote()
            self._at = step
        elif self._latest not in (-1, loader):
            self._pending.pop(self._latest, None)  # an evaluation that drew its batches with gradients enabled
        self._latest, self._last = -1, loader
        self._iterators[loader] = Ref(iterator)
        if loader not in self._met and loader not in self._why:
            self._meet(loader, iterator)
        if self._scene.torch.is_grad_enabled() and loader not in self._pending:
            self._anew[loader] = loader not in self.loaders and not self._same_weights()
            self._pending[loader] = self._met.get(loader)
            self._is_reset |= (
                self._evaluated is not None and self._at == self._evaluated[1] and not self._same_weights()
            )
            if self._scene.numbers.count("optimizer") != self._optimizers:
                self._goes_on = self._same_weights() and self._is_held()

    def called(self, module: Any, loader: int | None) -> None:
        """Record the call of a model with a result that tracks gradients."""
        if loader is None:
            return
        self._called.add(loader)
        if loader in self._pending and loader not in self.loaders and self._is_another(module):
            self._anew[loader] = True

    def evaluated(self, module: Any, loader: int | None) -> None:
        """Record the call of a model in an evaluation."""
        step = self._step()
        if step != self._at:
            self._promote()
            self._at = step
        self._latest = -1 if loader is None else loader
        last = self._evaluated
        if last is None or last[1] != step:
            self._measured = []
        if last is None or last[1] != step or last[0]() is not module:
            self._evaluated = weakref.ref(module), step, _weights(module)
            if len(self._measured) < _MOST_MODELS:
                self._measured.append(self._evaluated[0])

    def samples(self, loader: int) -> Samples:
        """Return the samples of a loader.

        Raises:
            Refused: the samples are unknown.
        """
        if loader not in self._met:
            raise Refused(self._why.get(loader, "its loader is unknown"))
        return self._met[loader]

    def _meet(self, loader: int, iterator: Any) -> None:
        """Determine the samples that a loader draws."""
        if len(self._met) > _MOST_LOADERS:
            self.unknown = self._why[loader] = "there are too many loaders"
            return
        try:
            with self._scene.sampling.checks:
                samples = self._bases.drawn(iterator)
            self._met[loader] = next((known for known in self._met.values() if known == samples), samples)
        except Refused as refused:
            self._why[loader] = str(refused)

    def compare(self, loader: int, aside: Callable[[], contextlib.AbstractContextManager[None]]) -> Overlap:
        """Return the comparison of the samples of an evaluation with those of the training.

        Args:
            loader: of the evaluation.
            aside: context manager for a comparison of values, which reads samples.

        Raises:
            Refused: the samples cannot be compared.
        """
        if self.unknown:
            raise Refused(self.unknown)
        samples = self.samples(loader)
        since, ever = self._since, self._ever
        if set(samples) == set(ever):
            found = replace(_numbers(samples, since, ever), earlier=count(common(samples, self._before)))
            return found if found.shared else self._copies(samples, since, ever, aside) or found
        with aside(), restored_states.kept(self._scene.torch):
            return self._values(samples, since, ever)

    def again(self, loader: int, before: Overlap) -> Overlap:
        """Return an earlier comparison, updated with the training of these weights since then."""
        return replace(before, shared=count(common(self.samples(loader), self._since)))

    def _values(self, samples: Samples, since: Samples, ever: Samples, *, stored: bool = False) -> Overlap:
        digests = functools.partial(self._contents.digests, stored=stored)
        try:
            mine, theirs, every = digests(samples), digests(since), set(digests(ever))
        except Changing:
            if stored:
                raise
            return self._values(samples, since, ever, stored=True)
        own, others = set(mine), set(theirs)
        return Overlap(
            samples=len(mine),
            shared=sum(digest in others for digest in mine),
            outside=sum(digest not in every for digest in mine),
            beyond=sum(digest not in own for digest in theirs),
            repeated=round(0.5 + max(repeated(mine), repeated(theirs)) * len(mine)),
            by_value=True,
        )

    def _copies(
        self,
        samples: Samples,
        since: Samples,
        ever: Samples,
        aside: Callable[[], contextlib.AbstractContextManager[None]],
    ) -> Overlap | None:
        """Return the comparison by value of parts of one data set that has samples more than once; None for others."""
        try:
            with aside(), restored_states.kept(self._scene.torch):
                mine, theirs = (self._contents.digests(part, some=True) for part in (samples, since))
                if len(set(mine) & set(theirs)) < _LEAST_COPIES or not self._contents.is_continuous(samples):
                    return None
                return replace(self._values(samples, since, ever), repeated=0)
        except Refused:
            return None

    def _step(self) -> int:
        coast = self._scene.coast
        return coast.number if coast.on else self._scene.sampling.step

    def _promote(self) -> None:
        """Count the batches drawn since the previous step as used for training, after an optimizer step."""
        for loader in [one for one in self._pending if self._is_glimpse(one)]:
            self._glimpsed.add(loader)
            del self._pending[loader]
        optimizers = self._scene.numbers.count("optimizer")
        if optimizers != self._optimizers or any(self._anew[loader] for loader in self._pending):
            if optimizers != self._optimizers or self._is_reset:
                self._before = together(self._before, self._since) if self._goes_on and not self._is_reset else {}
            self._optimizers, self._goes_on, self._is_reset = optimizers, False, False
            self._since = {}
            self.beginnings += 1
        for loader, samples in self._pending.items():
            if samples is None:
                self.unknown = self._why[loader]
            else:
                since, ever = together(self._since, samples), together(self._ever, samples)
                self.changes += since != self._since or ever != self._ever
                self._since, self._ever = since, ever
                self.loaders.add(loader)
        self._pending.clear()
        self._anew.clear()
        self._iterators.clear()
        self._called.clear()

    def _is_glimpse(self, loader: int) -> bool:
        """Return True if the first batch of a loader was only looked at, before those of another one were read.

        A loader is read all the same if its batches are drawn again before a later step, each by a new iterator.
        """
        if loader in (self._last, *self._called) or loader in self.loaders | self._glimpsed:
            return False
        return self._last in self._called and self._iterators[loader]() is None

    def _same_weights(self) -> bool:
        """Return True if the weights are those evaluated last, or if nothing was evaluated."""
        if self._evaluated is None:
            return True
        ref, step, weights = self._evaluated
        module = ref()
        return module is not None and step == self._step() and _weights(module) == weights

    def _is_another(self, module: Any) -> bool:
        """Return True if models were evaluated since the latest step, and this one has no weight of theirs."""
        if self._evaluated is None or self._evaluated[1] != self._step():
            return False
        own = {id(parameter) for parameter in module.parameters()}
        measured = [one for ref in self._measured if (one := ref()) is not None]
        if len(measured) < len(self._measured):
            return False
        return not any(id(parameter) in own for one in measured for parameter in one.parameters())

    def _is_held(self) -> bool:
        """Return True if the latest optimizer holds a weight of the model that was evaluated last."""
        module = self._evaluated[0]() if self._evaluated is not None else None
        numbers = self._scene.numbers
        latest = max(numbers.alive("optimizer"), key=lambda one: numbers.known("optimizer", one) or 0, default=None)
        if module is None or latest is None:
            return False
        held = {id(parameter) for group in latest.param_groups for parameter in group["params"]}
        return any(id(parameter) in held for parameter in module.parameters())


def _numbers(samples: Samples, since: Samples, ever: Samples) -> Overlap:
    shared = common(samples, since)
    return Overlap(count(samples), count(shared), count(without(samples, ever)), count(without(since, samples)))


def _weights(module: Any) -> list[float]:
    """Return a few weights of a model; on an accelerator, where reading them would wait for it, their versions."""
    some: list[float] = []
    trained = [part(parameter.detach()) for parameter in module.parameters() if parameter.requires_grad]
    parameters = [parameter for parameter in trained if parameter.numel()]
    for parameter in (*parameters[:1], *parameters[-1:]):
        on_cpu = parameter.device.type == "cpu"
        some += parameter.reshape(-1)[:_VALUES].tolist() if on_cpu else [parameter._version]
    return some
