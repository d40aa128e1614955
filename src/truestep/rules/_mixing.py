"""Base class of rules on mixed samples: the check on a copy of the model, and the loaders that it was trained on."""

from __future__ import annotations

from typing import ClassVar

from truestep.events import CheckSkipped, Event, ModelCalled, SamplesCompared, Site
from truestep.rules._rule import Progress, Rule


class SamplesMixed(Rule):
    """Base class of rules for causes of mixed samples within a batch."""

    causes: ClassVar[frozenset[str]]
    """The causes, as `SamplesCompared` names them."""

    def __init__(self) -> None:
        super().__init__()
        self._trained_on: dict[int, set[int]] = {}
        self._called: dict[int, Site | None] = {}
        """Model to the line of its latest call with gradients."""
        self._several: set[int] = set()
        """Models with calls on different inputs."""
        self._skipped = ""

    def unobserved(self, run: Progress) -> str:
        return self._skipped if SamplesCompared not in run.met and self._skipped else super().unobserved(run)

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ModelCalled(tracked=True):
                if event.loader is not None:
                    self._trained_on.setdefault(event.model, set()).add(event.loader)
                if event.model in self._called and not event.same_input:
                    self._several.add(event.model)
                self._called[event.model] = event.site
            case CheckSkipped(check="samples"):
                self._skipped = event.reason
            case SamplesCompared(cause=cause) if cause in self.causes and self._in_any_order(event, run):
                self.mixed(event, run)

    def mixed(self, event: SamplesCompared, run: Progress) -> None:
        """Report the failure that the comparison shows."""
        raise NotImplementedError

    def _in_any_order(self, event: SamplesCompared, run: Progress) -> bool:
        """Return True if the batch dimension is not a sequence: the samples are shuffled, or each has one label."""
        if event.loader is None:
            return True
        loaders = (run.loaders.get(number) for number in self._trained_on.get(event.model, ()))
        return any(loader is not None and loader.shuffled for loader in loaders)
