"""Places in the code that call models, with the facts about their calls that do not change."""

from __future__ import annotations

from typing import Any

from truestep.events import ModelCalled, Site
from truestep.probes.evaluation.last_pass import LastPass
from truestep.probes.forward.inputs.reads import READS_ASIDE
from truestep.probes.forward.model import Model
from truestep.probes.forward.results import Use, given_at, use_of
from truestep.probes.unread.states import DroppedState

_MOST_LOADERS = 6
"""Loaders with batches to be read at one place outside of sampled steps."""


_MEASURES = ("compared", "loss")
"""Uses of a result that measure a model."""


class CallSite:
    """A place in the code that calls a model, with the facts about the call that do not change."""

    __slots__ = ("dropped", "events", "given", "last", "loader", "loaders", "model", "reads", "site", "state", "use")

    def __init__(self, model: Model, site: Site | None, dropped: bool) -> None:
        self.model = model
        self.site = site
        self.dropped = dropped
        self.use = Use() if site is None else use_of(site)
        self.given = "" if site is None else given_at(site)
        self.events: dict[tuple[Any, ...], ModelCalled] = {}
        self.last: LastPass | None = None
        """Variable of the loop around the call that may be a metric of its last pass."""
        self.state: DroppedState | None = None
        """Set if the loop around the call drops the state that it returns."""
        self.reads = READS_ASIDE
        """Calls of an evaluation with values still to be read outside of sampled steps."""
        self.loader: int | None = None
        self.loaders: set[int | None] = {None}
        """Loader of these calls, and all before it: the data of each are read."""

    def evaluates(self, module: Any, grad: bool) -> bool:
        """Return True if a call is one of an evaluation; with gradients on, if its result is only measured."""
        return not grad or (self.use.only and self.use.how in _MEASURES and not module.training)

    def turn(self, loader: int | None) -> None:
        """Read calls of an evaluation again, on the data of another loader."""
        self.loader = loader
        if loader not in self.loaders and len(self.loaders) <= _MOST_LOADERS:
            self.loaders.add(loader)
            self.reads = READS_ASIDE

    def called(self, module: Any, key: tuple[Any, ...]) -> ModelCalled:
        """Return the event for calls with the same facts."""
        model = self.model
        _, training, on, grad, tracked, same, loader, autocast, dropout, drops, known = key
        kinds = {kind for bit, (kind, _) in enumerate(model.sensitive) if on >> bit & 1}
        return ModelCalled(
            model=model.number,
            site=self.site,
            training=training,
            sensitive=tuple(sorted({*kinds, "F.dropout"} if drops else kinds)),
            frozen_sensitive=len(kinds) < len(model.sensitive),
            grad=grad,
            tracked=tracked,
            discarded=self.dropped,
            same_input=same,
            known_input=known,
            loader=loader,
            compiled=module._compiled_call_impl is not None,
            autocast=autocast,
            use=self.use.how,
            only_read=self.use.only,
            dropout=dropout,
        )
