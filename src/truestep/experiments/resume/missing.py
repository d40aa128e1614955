"""Which piece of state a checkpoint lacks: what differs when a resumed run goes on, and what explains the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from truestep.experiments.resume.trace import RANDOM, Difference, Print, Trace, compare

FIXES: dict[str, tuple[str, str]] = {
    "weights": ("the weights", "save model.state_dict(), and load it with strict=True before the first step"),
    "position": (
        "the position in the epoch",
        "save how many batches of the epoch are done, and leave these out; or save at ends of epochs only",
    ),
    "epochs": (
        "the count of epochs or steps",
        "save how many epochs are done, and begin the loop there: range(done, epochs)",
    ),
    "order": (
        "the order of the data",
        "make it a function of the epoch (sampler.set_epoch(epoch)), or save the state of the loader's generator",
    ),
    "samples": (
        "randomness in the data set",
        "let what a sample draws follow from the seed, the epoch and its index",
    ),
    "state": (
        "the state of the optimizer",
        "save optimizer.state_dict(), and load it when the model is on its device",
    ),
    "settings": ("the settings of the optimizer", "load optimizer.state_dict(), and change groups after it only"),
    "schedules": ("the schedule", "save scheduler.state_dict(), and load it after the schedule is made"),
    "rates": ("the learning rate", "compute it from a step that is saved, or save the state of what computes it"),
    "scalers": ("the scale of GradScaler", "save scaler.state_dict(), and load it"),
    "buffers": (
        "buffers of the model",
        "save the whole model.state_dict(): it holds the statistics of BatchNorm, parameters() does not",
    ),
    "untrained": (
        "weights that are not trained",
        "save the state of copies and averages (EMA, best weights, teachers) and of frozen parts",
    ),
    "random torch": (RANDOM["torch"], "save torch.get_rng_state(), and set it right before the loop goes on"),
    "random accelerator": (
        RANDOM["accelerator"],
        "save torch.cuda.get_rng_state_all(), and set it right before the loop goes on",
    ),
    "random python": (RANDOM["python"], "save random.getstate(), and set it right before the loop goes on"),
    "random numpy": (RANDOM["numpy"], "save numpy.random.get_state(), and set it right before the loop goes on"),
    "unseen": (
        "state of the script itself",
        "save what the loss or the update reads besides: where the data is, counters, hidden states, generators",
    ),
}
"""Title and remedy of each piece of state, in the order in which they explain each other."""

_PUT_BACK = (
    "it is restored already: take it from the end of the last step that is not done again, and restore it after all "
    "that draws before the loop goes on (an evaluation that is done again, a batch drawn before the loop)"
)
"""The remedy for a random state that the program sets, and that is not the right one: to save it would be no news."""
_UNTRAINED = "those of the first step, before any training"
_BEFORE = ("weights", "state", "schedules", "scalers", "buffers", "untrained")
"""What differs before a step by its own fault."""
_OWN = ("weights", "state", "settings")
"""What of it belongs to one optimizer."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A piece of state that a resumed run does not have again.

    Attributes:
        piece: a key of `FIXES`.
        detail: what is seen of it.
        effect: whether it moves a result in the steps that were seen.
        restored: whether the program restores it, but not to what it was.
    """

    piece: str
    detail: str
    effect: bool = True
    restored: bool = False

    @property
    def title(self) -> str:
        """What it is."""
        return FIXES[self.piece][0]

    @property
    def remedy(self) -> str:
        """What to do."""
        return _PUT_BACK if self.restored else FIXES[self.piece][1]


def missing(reference: Trace, at: int, resumed: Trace, whole: bool) -> tuple[Missing, ...]:
    """Return the pieces that explain how a resumed run differs, the ones that explain most first.

    Args:
        reference: the uninterrupted run.
        at: how many of its steps are done when the other one begins.
        resumed: the run that goes on.
        whole: whether both came to their own end.
    """
    found: dict[str, Missing] = {}
    extra = at + len(resumed.steps) - len(reference.steps) if whole else 0
    pairs = list(zip(reference.steps[at:], resumed.steps, strict=False))
    differences = [compare(one, other) for one, other in pairs]
    first = next((place for place, difference in enumerate(differences) if difference.counts), None)
    begun: set[str] = set()
    for place, (one, other) in enumerate(pairs):
        if place in (0, first):
            _before(reference, one, other, differences[place], found)
        elif other.optimizer not in begun:  # what it steps on is as it was put back
            own = {name: held for name, held in differences[place].pieces.items() if name in _OWN}
            _before(reference, one, other, Difference(own), found)
        begun.add(other.optimizer)
    if first is not None:
        _data(reference, at, pairs, differences, found, extra if whole else None)
        _rates(at, pairs, differences, found)
        _random_effects(differences[first], found)
        _unseen(differences[first], found)
    _count(reference, at, extra, found)
    order = list(FIXES)
    return tuple(sorted(found.values(), key=lambda one: (not one.effect, order.index(one.piece))))


def _before(reference: Trace, one: Print, other: Print, difference: Difference, found: dict[str, Missing]) -> None:
    """Add what differs before a step: state that was not put back."""
    for piece in _BEFORE:
        if piece in difference.pieces and piece not in found:
            start = reference.steps[0].weights
            found[piece] = Missing(piece, _detail(piece, one, other, difference, start))
    if "weights" in found and found["weights"].detail == _UNTRAINED:
        found.pop("buffers", None)  # they come back with the weights
    if "settings" in difference.pieces and not found.keys() & {"state", "settings"}:
        found["settings"] = Missing("settings", _settings(one, other))
    for state in RANDOM:
        piece = f"random {state}"
        if piece in difference.pieces and piece not in found and reference.draws_from(state):
            restored = state in other.put_back
            detail = _restored(reference, other, state) if restored else "begins anew"
            found[piece] = Missing(piece, detail, effect=False, restored=restored)


def _restored(reference: Trace, other: Print, state: str) -> str:
    """Return what a random state is that was restored, and is not that of the step: of which step, if of any."""
    same = [number for number, step in enumerate(reference.steps, 1) if step.random.get(state) == other.random[state]]
    what = f"it is that of step {same[0]}" if same else "something draws from it between restoring and this step"
    return f"was restored, but is not what it was before this step: {what}"


def _detail(piece: str, one: Print, other: Print, difference: Difference, start: str) -> str:
    before, after = difference.pieces[piece]
    if piece == "weights":
        return _weights(one, other, start)
    if piece == "state":
        kind = one.optimizer.partition(" ")[0]
        if not after:
            rates = "; its learning rate is that of the start" if "rates" in difference.pieces else ""
            return f"that of {kind} is empty; it held {', '.join(before)}{rates}"
        keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        return f"that of {kind}: {', '.join(keys)} differ"
    if piece in ("buffers", "untrained"):
        return listed([name.partition(": ")[2] for name in before])
    mine, theirs = list(before), list(after)
    for value in before:
        if value in theirs:
            mine.remove(value)
            theirs.remove(value)
    return f"at {'; '.join(theirs) or 'nothing'} instead of {'; '.join(mine) or 'nothing'}"


def _weights(one: Print, other: Print, start: str) -> str:
    mine, theirs = digits(one.weights), digits(other.weights)
    if other.weights == start:
        return _UNTRAINED
    wrong = [place for place, pair in enumerate(zip(mine, theirs, strict=False)) if pair[0] != pair[1]]
    names = [other.names[place] if place < len(other.names) else "" for place in wrong]
    if len(wrong) < len(mine):
        what = listed(names) if all(names) else f"{len(wrong)} tensors"
        return f"{what}: not those of this step; the other {len(mine) - len(wrong)} are"
    apart = distance(one.sample, other.sample)
    return f"stored in another precision, or changed when loaded: the largest relative difference is {apart:.1g}"


def _settings(one: Print, other: Print) -> str:
    changed = []
    for number, (before, after) in enumerate(zip(one.settings, other.settings, strict=False)):
        changed += [
            f"{name} of group {number} is {after.get(name, 'gone')} instead of {before.get(name, 'nothing')}"
            for name in {**before, **after}
            if before.get(name) != after.get(name)
        ]
    return "; ".join(changed[:3]) or "another number of groups"


def _data(
    reference: Trace,
    at: int,
    pairs: Sequence[tuple[Print, Print]],
    differences: Sequence[Difference],
    found: dict[str, Missing],
    extra: int | None,
) -> None:
    """Add why batches differ: the place in the epoch, or the order; or leave it to a random state."""
    place = next((place for place, difference in enumerate(differences) if "batches" in difference.pieces), None)
    if place is None:
        return
    one, other = pairs[place]
    (mine, position, wanted), (theirs, began, drawn) = one.batches[-1], other.batches[-1]
    step, states = at + place + 1, [piece for piece in found if piece.startswith("random")]
    if wanted and wanted == drawn and mine != theirs:
        for piece in states:
            found[piece] = _moves(found[piece], "the same samples are read with other values")
        if not states:
            found["samples"] = Missing("samples", f"the samples of step {step} are the same, their values are not")
        return
    seen = [
        number
        for number, known in enumerate(reference.steps, 1)
        if any(batch[2] == drawn if drawn else batch[0] == theirs for batch in known.batches)
    ]
    same = f"that of step {min(seen, key=lambda number: abs(number - step))}" if seen else "one that never came before"
    what = f"the batch of step {step} is {same}" if mine != theirs else f"before step {step} other batches are drawn"
    if position != began and (seen or extra != 0):  # one that skips what is done counts from there: its length tells
        found["position"] = Missing("position", f"{what}: number {began} of its epoch, not number {position}")
        for state in ("torch", "python", "numpy"):
            if state in other.put_back and place == 0:  # a loader that begins anew draws from what was put back
                found.pop(f"random {state}", None)
        return
    for piece in states:
        found[piece] = _moves(found[piece], "the data comes in another order")
    if not states:
        found["order"] = Missing("order", what)


def _rates(
    at: int, pairs: Sequence[tuple[Print, Print]], differences: Sequence[Difference], found: dict[str, Missing]
) -> None:
    """Add a learning rate that differs, where neither the schedule nor the optimizer explains it."""
    if found.keys() & {"schedules", "state"}:
        return
    place = next((place for place, difference in enumerate(differences) if "rates" in difference.pieces), None)
    if place is None:
        return
    one, other = pairs[place]
    if place and any(schedule.startswith("ReduceLROnPlateau") for schedule in one.schedules):
        return  # it follows the losses
    what = f"{_figures(other.rates)} instead of {_figures(one.rates)} at step {at + place + 1}"
    piece = "schedules" if "schedules" in differences[place].pieces else "rates"
    found[piece] = Missing(piece, what)


def _random_effects(difference: Difference, found: dict[str, Missing]) -> None:
    """Say of random states whether they move the first step that differs."""
    if "loss" not in difference.pieces or found.keys() & {"weights", "position", "order"}:
        return
    for piece in [piece for piece in found if piece.startswith("random")]:
        if not found[piece].effect:
            found[piece] = _moves(found[piece], "what is drawn in the step differs")


def _moves(one: Missing, what: str) -> Missing:
    """Return a piece that moves a result after all."""
    return replace(one, detail=f"{one.detail}; {what}", effect=True)


def _unseen(difference: Difference, found: dict[str, Missing]) -> None:
    effective = {piece for piece, one in found.items() if one.effect}
    if "loss" in difference.pieces:
        explained = effective - {"state", "settings", "schedules", "rates", "untrained"}
        if not explained:
            found["unseen"] = Missing("unseen", "the loss differs where all that is looked at is the same")
    elif difference.result and not effective:
        found["unseen"] = Missing("unseen", "the update differs where the loss and all that is looked at is the same")


def _count(reference: Trace, at: int, extra: int, found: dict[str, Missing]) -> None:
    """Add a count of epochs that begins anew: the resumed run is longer or shorter than what was left."""
    if not extra:
        return
    if "position" in found and abs(extra) < _epoch(reference):
        if extra == at:  # an epoch that begins anew has as many more, and so has a count of steps that does
            detail = f"{found['position'].detail}; {extra} more steps are taken than were left"
            found["position"] = replace(
                found["position"], detail=f"{detail}: where a count of steps ends it, save it too"
            )
        return
    if extra > 0:
        what = f"it takes {extra} more steps than were left"
    else:
        what = f"it takes {-extra} steps less than were left"
    found["epochs"] = Missing("epochs", what)
    order = found.get("order")
    if order is not None and extra > 0 and order.detail.endswith(f"is that of step {at + 1 - extra}"):
        del found["order"]  # the order is right, for the epoch that it takes itself to be in


def _epoch(reference: Trace) -> float:
    """Return how many steps an epoch has; infinite where no second one begins."""
    starts = [number for number, step in enumerate(reference.steps) if any(b[1] == 1 for b in step.batches)]
    return starts[1] - starts[0] if len(starts) > 1 else float("inf")


def digits(weights: str) -> list[str]:
    """Return the checksums of single tensors."""
    return [weights[start : start + 8] for start in range(0, len(weights), 8)]


def distance(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the largest difference of single weights, relative to the largest of them."""
    most = max((abs(value) for value in one), default=0.0)
    return max((abs(a - b) for a, b in zip(one, other, strict=False)), default=0.0) / (most or 1.0)


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _figures(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values[:3])
