"""Which samples of an evaluation the training draws too: by their numbers in one data set, or by what they hold.

A loader counts as trained on when an optimizer stepped after a batch of it was drawn with gradients on.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from typing import Any

from truestep.probes.active import restored_states
from truestep.probes.active.contents import Contents, repeated
from truestep.probes.active.copies import Refused
from truestep.probes.active.drawn import Bases, Samples, common, count, together, without
from truestep.probes.context.scene import Scene

_MOST_LOADERS = 96
_VALUES = 8


@dataclass(frozen=True, slots=True)
class Overlap:
    """What came out for one loader of an evaluation."""

    samples: int = 0
    shared: int = 0
    """How many of them the training of these weights has drawn."""
    outside: int = 0
    """How many no training of the run has drawn."""
    beyond: int = 0
    """How many samples of the training the evaluation does not have."""
    repeated: int = 0
    """How many would be expected to be shared by chance, as samples repeat within either side."""
    by_value: bool = False


class Trained:
    """Keeps account of the samples that training draws.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._bases = Bases(scene)
        self._contents = Contents(scene, self._bases)
        self._pending: dict[int, Samples | None] = {}
        """Loaders drawn with gradients on since the latest step; None where their samples are not known."""
        self._anew: dict[int, bool] = {}
        """Whether a loader was drawn for the first time with other weights than those evaluated last."""
        self._at = -1
        self._optimizers = 0
        self._met: dict[int, Samples] = {}
        self._why: dict[int, str] = {}
        """Loader to why its samples are not known."""
        self._latest = -1
        """The loader of the latest batch; -1 where a model was not evaluated on it."""
        self._since: Samples = {}
        """The samples that the weights of now were trained on, by one set of optimizers."""
        self._evaluated: tuple[weakref.ref[Any], int, list[float]] | None = None
        """The model evaluated last, at which step, and some of its weights then."""
        self._ever: Samples = {}
        """All samples that were trained on."""
        self.loaders: set[int] = set()
        """All loaders that were trained on."""
        self.beginnings = 0
        """How often training began with other weights."""
        self.changes = 0
        """How often samples joined those that were trained on."""
        self.unknown = ""
        """Why it is not known what was trained on, empty where it is."""

    def drawn(self, loader: int, iterator: Any) -> None:
        """Take up a batch."""
        step = self._step()
        if step != self._at:
            self._promote()
            self._at = step
        elif self._latest not in (-1, loader):
            self._pending.pop(self._latest, None)  # an evaluation whose batches were drawn with gradients on
        self._latest = -1
        if loader not in self._met and loader not in self._why:
            self._meet(loader, iterator)
        if self._scene.torch.is_grad_enabled() and loader not in self._pending:
            self._anew[loader] = loader not in self.loaders and not self._same_weights()
            self._pending[loader] = self._met.get(loader)

    def evaluated(self, module: Any, loader: int | None) -> None:
        """Take up the call of a model in an evaluation."""
        step = self._step()
        if step != self._at:
            self._promote()
            self._at = step
        self._latest = -1 if loader is None else loader
        last = self._evaluated
        if last is None or last[1] != step or last[0]() is not module:
            self._evaluated = weakref.ref(module), step, _weights(module)

    def samples(self, loader: int) -> Samples:
        """Return the samples of a loader.

        Raises:
            Refused: they are not known.
        """
        if loader not in self._met:
            raise Refused(self._why.get(loader, "its loader is not known"))
        return self._met[loader]

    def _meet(self, loader: int, iterator: Any) -> None:
        """Find out which samples a loader draws."""
        if len(self._met) > _MOST_LOADERS:
            self.unknown = self._why[loader] = "there are too many loaders"
            return
        try:
            samples = self._bases.drawn(iterator)
            self._met[loader] = next((known for known in self._met.values() if known == samples), samples)
        except Refused as refused:
            self._why[loader] = str(refused)

    def compare(self, loader: int) -> Overlap:
        """Compare the samples of an evaluation with those of the training.

        Raises:
            Refused: it cannot be said.
        """
        if self.unknown:
            raise Refused(self.unknown)
        samples = self.samples(loader)
        since, ever = self._since, self._ever
        if set(samples) == set(ever):
            return _numbers(samples, since, ever)
        with restored_states.kept(self._scene.torch):
            return self._values(samples, since, ever)

    def again(self, loader: int, before: Overlap) -> Overlap:
        """Compare an evaluation of before with what these weights were trained on meanwhile."""
        return replace(before, shared=count(common(self.samples(loader), self._since)))

    def _values(self, samples: Samples, since: Samples, ever: Samples) -> Overlap:
        mine, theirs = self._contents.digests(samples), self._contents.digests(since)
        every = set(self._contents.digests(ever))
        own, others = set(mine), set(theirs)
        return Overlap(
            samples=len(mine),
            shared=sum(digest in others for digest in mine),
            outside=sum(digest not in every for digest in mine),
            beyond=sum(digest not in own for digest in theirs),
            repeated=round(0.5 + max(repeated(mine), repeated(theirs)) * len(mine)),
            by_value=True,
        )

    def _step(self) -> int:
        coast = self._scene.coast
        return coast.number if coast.on else self._scene.step

    def _promote(self) -> None:
        """Take note that a step was made on the batches drawn since the one before."""
        optimizers = self._scene.count("optimizer")
        if optimizers != self._optimizers or any(self._anew[loader] for loader in self._pending):
            self._optimizers = optimizers
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

    def _same_weights(self) -> bool:
        """Whether the weights are still those that were evaluated last, or none were."""
        if self._evaluated is None:
            return True
        ref, step, weights = self._evaluated
        module = ref()
        return module is not None and step == self._step() and _weights(module) == weights


def _numbers(samples: Samples, since: Samples, ever: Samples) -> Overlap:
    shared = common(samples, since)
    return Overlap(count(samples), count(shared), count(without(samples, ever)), count(without(since, samples)))


def _weights(module: Any) -> list[float]:
    """Return a few weights of a model."""
    some: list[float] = []
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad and parameter.numel()]
    for parameter in (*parameters[:1], *parameters[-1:]):
        some += [float(value) for value in parameter.detach().reshape(-1)[:_VALUES].tolist()]
    return some
