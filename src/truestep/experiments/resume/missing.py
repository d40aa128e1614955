"""Find the pieces of state that a checkpoint lacks, from the differences between a resumed and an uninterrupted run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from truestep.experiments.instruments.state.trace import RANDOM, Difference, Print, Trace, compare
from truestep.experiments.resume.pieces import PIECES

_RESTORED = (
    "it is restored already, but to a wrong value: save it at the end of the last step that is not repeated, and "
    "restore it after everything that draws before the loop continues (a repeated evaluation, a batch drawn early)"
)
"""Remedy for a random state that the program restores to a wrong value: it saves the state already."""
_UNTRAINED = "those of the first step, before any training"


@dataclass(frozen=True, slots=True)
class Missing:
    """A piece of state that a resumed run lacks.

    Attributes:
        piece: a key of `PIECES`.
        detail: description of the difference.
        effect: True if it changes a result in the compared steps.
        restored: True if the program restores it, but to a wrong value.
    """

    piece: str
    detail: str
    effect: bool = True
    restored: bool = False

    @property
    def title(self) -> str:
        """Name for people."""
        return PIECES[self.piece].title

    @property
    def remedy(self) -> str:
        """One imperative sentence."""
        return _RESTORED if self.restored else PIECES[self.piece].remedy


def missing(reference: Trace, at: int, resumed: Trace, whole: bool) -> tuple[Missing, ...]:
    """Return the pieces that explain the differences of a resumed run, the most important first.

    Args:
        reference: the uninterrupted run.
        at: number of its steps that were done when the resumed run begins.
        resumed: the resumed run.
        whole: True if both runs ended by themselves.
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
        elif other.optimizer not in begun:  # its first step: its parameters and state are still as restored
            own = {
                name: held
                for name, held in differences[place].pieces.items()
                if name in PIECES and PIECES[name].of_optimizer
            }
            _before(reference, one, other, Difference(own), found)
        begun.add(other.optimizer)
    if first is not None:
        _data(reference, at, pairs, differences, found, extra if whole else None)
        _rates(at, pairs, differences, found)
        _random_effects(differences[first], found)
        _unseen(differences[first], found)
    _count(reference, at, extra, found)
    order = list(PIECES)
    return tuple(sorted(found.values(), key=lambda one: (not one.effect, order.index(one.piece))))


def _before(reference: Trace, one: Print, other: Print, difference: Difference, found: dict[str, Missing]) -> None:
    """Add the pieces that differ before a step: state that was not restored."""
    for piece in [piece.name for piece in PIECES.values() if piece.carried]:
        if piece in difference.pieces and piece not in found:
            start = reference.steps[0].weights
            found[piece] = Missing(piece, _detail(piece, one, other, difference, start))
    if "weights" in found and found["weights"].detail == _UNTRAINED:
        found.pop("buffers", None)  # loading the weights restores them too
    if "settings" in difference.pieces and not found.keys() & {"state", "settings"}:
        found["settings"] = Missing("settings", _settings(one, other))
    for state in RANDOM:
        piece = f"random {state}"
        if piece in difference.pieces and piece not in found and reference.draws_from(state):
            restored = state in other.put_back
            detail = _restored(reference, other, state) if restored else "starts from its initial value"
            found[piece] = Missing(piece, detail, effect=False, restored=restored)


def _restored(reference: Trace, other: Print, state: str) -> str:
    """Return a description of a random state that was restored to a wrong value, with the step that it belongs to."""
    same = [number for number, step in enumerate(reference.steps, 1) if step.random.get(state) == other.random[state]]
    what = f"it is that of step {same[0]}" if same else "something draws from it between restoring and this step"
    return f"was restored, but to another value than before this step: {what}"


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
        return f"{what}: wrong values for this step; the other {len(mine) - len(wrong)} tensors are right"
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
    """Add the reason why batches differ: the position in the epoch, the order, or a random state."""
    place = next((place for place, difference in enumerate(differences) if "batches" in difference.pieces), None)
    if place is None:
        return
    one, other = pairs[place]
    (mine, position, wanted), (theirs, began, drawn) = one.batches[-1], other.batches[-1]
    step, states = at + place + 1, [piece for piece in found if piece.startswith("random")]
    if wanted and wanted == drawn and mine != theirs:
        for piece in states:
            found[piece] = _moves(found[piece], "the same samples have other values")
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
    # A run that skips finished batches counts the rest from 1. It is right if the batch is new and the length matches.
    if position != began and (seen or extra != 0):
        found["position"] = Missing("position", f"{what}: number {began} of its epoch, not number {position}")
        for state in ("torch", "python", "numpy"):
            if state in other.put_back and place == 0:  # a loader that restarts its epoch draws from the restored state
                found.pop(f"random {state}", None)
        return
    for piece in states:
        found[piece] = _moves(found[piece], "the order of the data changes")
    if not states:
        found["order"] = Missing("order", what)


def _rates(
    at: int, pairs: Sequence[tuple[Print, Print]], differences: Sequence[Difference], found: dict[str, Missing]
) -> None:
    """Add a learning rate that differs, unless the schedule or the optimizer explains it."""
    if found.keys() & {"schedules", "state"}:
        return
    place = next((place for place, difference in enumerate(differences) if "rates" in difference.pieces), None)
    if place is None:
        return
    one, other = pairs[place]
    if place and any(schedule.startswith("ReduceLROnPlateau") for schedule in one.schedules):
        return  # this schedule depends on the losses, which differ
    what = f"{_figures(other.rates)} instead of {_figures(one.rates)} at step {at + place + 1}"
    piece = "schedules" if "schedules" in differences[place].pieces else "rates"
    found[piece] = Missing(piece, what)


def _random_effects(difference: Difference, found: dict[str, Missing]) -> None:
    """Mark the random states that change the first step that differs."""
    if "loss" not in difference.pieces or found.keys() & {"weights", "position", "order"}:
        return
    for piece in [piece for piece in found if piece.startswith("random")]:
        if not found[piece].effect:
            found[piece] = _moves(found[piece], "the random numbers of the step differ")


def _moves(one: Missing, what: str) -> Missing:
    """Return the piece, marked as changing a result."""
    return replace(one, detail=f"{one.detail}; {what}", effect=True)


def _unseen(difference: Difference, found: dict[str, Missing]) -> None:
    effective = {piece for piece, one in found.items() if one.effect}
    if "loss" in difference.pieces:
        explained = {piece for piece in effective if PIECES[piece].explains_loss}
        if not explained:
            found["unseen"] = Missing("unseen", "the loss differs although all compared state is equal")
    elif difference.result and not effective:
        found["unseen"] = Missing("unseen", "the update differs although the loss and all compared state are equal")


def _count(reference: Trace, at: int, extra: int, found: dict[str, Missing]) -> None:
    """Add a count of epochs that restarts: the resumed run is longer or shorter than the rest of the reference."""
    if not extra:
        return
    if "position" in found and abs(extra) < _epoch(reference):
        if extra == at:  # a restarted epoch explains that many more steps, and so does a restarted count of steps
            detail = f"{found['position'].detail}; {extra} more steps are taken than were left"
            found["position"] = replace(
                found["position"], detail=f"{detail}: if a count of steps ends the run, save it too"
            )
        return
    if extra > 0:
        what = f"it takes {extra} more steps than were left"
    else:
        what = f"it takes {-extra} fewer steps than were left"
    found["epochs"] = Missing("epochs", what)
    order = found.get("order")
    if order is not None and extra > 0 and order.detail.endswith(f"is that of step {at + 1 - extra}"):
        del found["order"]  # the order is right for the epoch that the run believes it is in


def _epoch(reference: Trace) -> float:
    """Return the steps per epoch; infinity if no second epoch begins."""
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
    """Return the first three names, and the number of the others."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _figures(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values[:3])
