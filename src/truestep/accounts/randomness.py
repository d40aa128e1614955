"""The account of randomness: layers that draw random numbers, by the purpose of the call."""

from __future__ import annotations

from truestep.accounts._account import Account, Entry, line_of
from truestep.accounts.calls import Calls
from truestep.accounts.run_objects import Objects
from truestep.events import DrawsCompared, Event, ModelCalled, Site

_Key = tuple[int, Site | None, str]
"""Model, line, and the way in which dropout ran: "layers", "function", "off" (layers in eval mode), or "drawn" (a copy
in eval mode gave another result with another seed)."""
_STATISTICS = ("BatchNorm", "SyncBatchNorm", "InstanceNorm", "LazyBatchNorm", "LazyInstanceNorm")
_WORDS = {"training": "training", "evaluation": "evaluation", "step": "calls between steps", "fixed": "fixed models"}


def draws(kind: str) -> bool:
    """Return True if a layer that depends on the mode draws random numbers in train mode.

    >>> draws("Dropout2d"), draws("BatchNorm1d"), draws("FSDPBatchNorm1d")
    (True, False, False)
    """
    return not kind.removeprefix("FSDP").startswith(_STATISTICS)


class Randomness(Account[_Key]):
    """Counts calls in which dropout, or a similar layer, was on or off.

    Args:
        objects: the objects of the run.
        calls: the account of calls, which knows the purposes.
    """

    name = "randomness"

    def __init__(self, objects: Objects, calls: Calls) -> None:
        super().__init__(objects)
        self._calls = calls

    def note(self, event: Event) -> None:
        """Enter an event."""
        if isinstance(event, DrawsCompared) and event.differ:
            self.tally.add((event.model, event.site, "drawn"))
        if not isinstance(event, ModelCalled):
            return
        if event.dropout is not None:
            self.tally.add((event.model, event.site, "function"))
        if any(map(draws, event.sensitive)):
            self.tally.add((event.model, event.site, "layers"))
        elif event.frozen_sensitive:
            self.tally.add((event.model, event.site, "off"))

    def entry(self) -> Entry | None:
        """Return the purposes in which dropout was on."""
        drawing = self._drawing()
        on = self._places(("layers", "function"), drawing)
        off = self._places(("off",), drawing)
        drawn = any(way == "drawn" for _, _, way in self.tally)
        if not on and not off:
            return Entry("random draws that do not follow the mode", {"dropout": []}) if drawn else None
        facts = {
            "dropout": [
                {"model": self.objects.model_name(model), "site": line_of(site), "by": way, "calls": self.tally[key]}
                for key in self.tally
                for model, site, way in (key,)
                if model in drawing
            ]
        }
        if not on:
            return Entry("dropout off throughout", facts)
        names = [_WORDS[purpose] for purpose in _WORDS if purpose in on]
        if names == ["training"] and drawn:
            return Entry("dropout in training, other random draws do not follow the mode", facts)
        if names == ["training"]:
            return Entry("dropout in training only" if off - on else "dropout in training", facts)
        return Entry(f"dropout in {' and '.join([', '.join(names[:-1]), names[-1]] if names[1:] else names)}", facts)

    def _drawing(self) -> set[int]:
        """Return the models with layers, or functions, that draw random numbers in train mode."""
        layers = {model for model, met in self.objects.models.items() if any(map(draws, met.sensitive))}
        return layers | {model for model, _, way in self.tally if way not in ("off", "drawn")}

    def _places(self, ways: tuple[str, ...], models: set[int]) -> set[str]:
        purposes = self._calls.purposes()
        places = {(model, site) for model, site, way in self.tally if way in ways and model in models}
        return {purpose for place, purpose in purposes.items() if place in places}
