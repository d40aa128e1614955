"""The account of gradients: each backward pass, by its line, and the use of the gradients that it made.

A pass is *used* when an optimizer steps on its gradients, or when the parameters move by hand. It is *used again* if a
later step finds its gradients still there, under those of another pass. It is *skipped* if a GradScaler found its
gradients not finite, and *discarded* if all its gradients are cleared and no step has used any of them.

With several optimizers, a pass belongs to those with parameters that its tape reaches, and counts as used as soon as
one of them steps: in adversarial training a pass also writes gradients for the other network, which clears them before
its own pass.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from truestep import events as ev
from truestep.accounts._account import Account, Entry, amount, line_of, place
from truestep.accounts.run_objects import Objects
from truestep.events import Event, Site

_Key = tuple[str, Site | None, Site | int | None]
"""Kind of the fact, line of the pass, and the line that cleared it or the number of passes that were lost."""
_MOST_OPEN = 1000
"""Passes that are followed for an optimizer that neither steps nor clears."""
_MOST_OPTIMIZERS = 256
"""Optimizers that are followed: those built or used last. Some programs build one for each step."""


class _Pass:
    """One backward pass with gradients that are not all used or cleared."""

    __slots__ = ("pending", "site", "touched", "used")

    def __init__(self, site: Site | None, optimizers: set[int]) -> None:
        self.site = site
        self.pending = optimizers
        """Optimizers that may hold gradients of it."""
        self.used = False
        self.touched = False
        """True if a call cleared gradients that may be of this pass."""


@dataclass(slots=True)
class PassLine:
    """The passes made at one line."""

    site: Site | None
    made: int = 0
    used: int = 0
    again: int = 0
    """Number of the used ones that a later step used once more."""
    skipped: int = 0
    """Number of those that a GradScaler skipped, since their gradients were not finite."""
    discarded: dict[Site | None, int] = field(default_factory=dict)
    """Number of the discarded ones, by the line that cleared them; None for a clearing by hand."""
    lost: Counter[int] = field(default_factory=Counter)
    """For each step on passes of this line: number of its passes that were discarded since the step before."""
    behind: int = 0
    """Number of steps on passes of this line that came right behind a pass over a loader, with more than one lost."""
    elsewhere: bool | None = None
    """True if gradients of this line may have been used otherwise: for an input, or read by the script; None if this
    could not be determined."""

    @property
    def wasted(self) -> int:
        """Number of the discarded ones."""
        return sum(self.discarded.values())


class Gradients(Account[_Key]):
    """Follows the gradients of a run."""

    name = "gradients"

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self._open: dict[int, list[_Pass]] = {}
        """Optimizer to the passes that may have made gradients for it, in the order of the latest use."""
        self._spent: dict[int, list[Site | None]] = {}
        """Optimizer to the lines of the passes that its last step used."""
        self._recent: list[_Pass] = []
        """Passes since the latest step."""
        self._loose: list[_Pass] = []
        """Passes in a run without an optimizer."""
        self._lost: Counter[Site | None] = Counter()
        """Passes discarded since the last step on passes of their line."""
        self._elsewhere: dict[Site | None, bool] = {}
        self._reached: dict[Site | None, list[set[int]]] = {}
        """Parameters that the passes of a line reach, as far as the tape was read, apart for models in its turns; 0 for
        unknown ones."""
        self._owners: dict[Site | None, tuple[int, set[int]]] = {}
        """Number of optimizers when the tape of a line was read last, and those of them that hold some of these."""
        self._behind = False
        """True after the end of a pass over a loader, until the next backward pass."""
        self._waits = False
        """True if the gradients of the last pass wait for the next one."""
        self.wasted = False
        """True if a pass was discarded."""

    def note(self, event: Event) -> None:
        """Enter an event."""
        match event:
            case ev.BackwardEnded() if event.written or event.waits or self._reaches_optimizers(event.site):
                self._made(event)
            case ev.OptimizerBuilt():
                self._follow(event.optimizer)
            case ev.LoaderEnded():
                self._behind = True
            case ev.GradientsZeroed():
                self._cleared(event)
            case ev.OptimizerStepped():
                self._stepped(event)
            case ev.HandStepped():
                self._moved()
            case ev.ScalerStepped(skipped=True):
                self._skipped(event)
            case ev.TapeRead():
                read = event.read or not all(map(self._is_trained, event.reached))
                self._elsewhere[event.site] = read or self._elsewhere.get(event.site, False)
                reached = self._reach(event.site, {*event.reached, *((0,) if event.opaque else ())})
                owners = (self.objects.held_by.get(number, ()) for number in reached)
                owned = set() if 0 in reached else set().union(*owners)
                self._owners[event.site] = len(self.objects.holds), owned

    def _reach(self, site: Site | None, reached: set[int]) -> set[int]:
        """Enter the parameters of a tape; return those that the passes of its line may reach from now on.

        A fresh model in place of the one before has the line alone, until the other one has a turn again.
        """
        models = self._reached.setdefault(site, [])
        at = next((at for at, known in enumerate(models) if not known.isdisjoint(reached)), len(models))
        if at == len(models):
            models.append(set())
        elif at < len(models) - 1:
            models[:] = [set().union(*models)]
            at = 0
        models[at] |= reached
        return models[at]

    def _reaches_optimizers(self, site: Site | None) -> bool:
        """Return True if the tape of a line reaches parameters of optimizers: a pass may miss the few observed ones."""
        return bool(self._owners.get(site, (0, set()))[1])

    def lines(self) -> dict[Site | None, PassLine]:
        """Return the facts of each line with a backward pass, in the order of their first pass."""
        lines: dict[Site | None, PassLine] = {}
        for key in self.tally:
            what, site, detail = key
            line = lines.setdefault(site, PassLine(site, elsewhere=self._elsewhere.get(site)))
            count = self.tally[key]
            if what == "lost":
                assert isinstance(detail, int)
                line.lost[detail] += count
            elif what == "discarded":
                assert not isinstance(detail, int)
                line.discarded[detail] = count
            else:
                setattr(line, what, count)
        return lines

    def used_at(self, site: Site | None) -> int:
        """Return the number of passes of a line that a step used."""
        return self.tally["used", site, None]

    def entry(self) -> Entry | None:
        """Return the passes made, and their use."""
        lines = list(self.lines().values())
        if not lines:
            return None
        made, used, again, skipped, wasted = (
            sum(getattr(line, what) for line in lines) for what in ("made", "used", "again", "skipped", "wasted")
        )
        most = max(lines, key=lambda line: line.made)
        where = f" at {len(lines)} lines" if len(lines) > 1 else f" ({place(most.site)})" if most.site else ""
        parts = [f"{amount(made, 'backward pass')}{where}"]
        parts += ["all used once"] if used == made and not again else [f"{used:,} used"] if used else []
        parts += [f"{again:,} used again"] if again else []
        parts += [f"{skipped:,} skipped by a scaler"] if skipped else []
        parts += [f"{wasted:,} cleared unused"] if wasted else []
        parts += ["never used"] if len(parts) == 1 else []
        return Entry(", ".join(parts), {"lines": [_facts(line) for line in lines]})

    def _is_trained(self, number: int) -> bool:
        """Return True if a tensor that a loss reaches is a parameter of an optimizer or a model, and not an input."""
        if number in self.objects.held_by:
            return True
        met = self.objects.parameters.get(number)
        return met is not None and met.model is not None

    # --- entries -----------------------------------------------------------------------------------------------------

    def _made(self, event: ev.BackwardEnded) -> None:
        self._add("made", event.site)
        self._behind = False
        if event.in_step:
            self._add("used", event.site)
            return
        waited, self._waits = self._waits, event.waits
        if not event.onto_fresh and event.written == event.observed and not waited:
            self._by_hand(onto_used=bool(event.onto_used))
        made = _Pass(event.site, self._open.keys() & self._owned(event.site) or set(self._open))
        for number in made.pending:
            if len(self._open[number]) < _MOST_OPEN:  # later ones stay pending, and are neither used nor discarded
                self._open[number].append(made)
        if len(self._recent) < _MOST_OPEN:
            self._recent.append(made)
        if not self._open and len(self._loose) < _MOST_OPEN:
            self._loose.append(made)

    def _owned(self, site: Site | None) -> set[int]:
        """Return the optimizers that the passes of a line make gradients for; empty if unknown.

        They are unknown when another optimizer was built since the tape was read: it may hold what the line reaches.
        """
        known, owned = self._owners.get(site, (0, set()))
        return owned if known == len(self.objects.holds) else set()

    def _follow(self, number: int) -> list[_Pass]:
        """Return the passes that wait for an optimizer, which is now the one used last, and let none wait."""
        waiting = self._open.pop(number, [])
        self._open[number] = []
        if len(self._open) > _MOST_OPTIMIZERS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            self._spent.pop(oldest, None)
        return waiting

    def _by_hand(self, *, onto_used: bool) -> None:
        """Enter that a pass met no unused gradient: those that waited were cleared by assignment."""
        for number in list(self._open):
            self._clear(number, None)
            if not onto_used:
                self._spent.pop(number, None)

    def _cleared(self, event: ev.GradientsZeroed) -> None:
        for number in self.objects.cleared_by(event):
            if event.fresh:
                self._clear(number, event.site)
            else:
                self._leave(number)
            self._spent.pop(number, None)

    def _clear(self, number: int, site: Site | None) -> None:
        for waiting in self._follow(number):
            waiting.touched = True
            self._resolve(waiting, number, site)

    def _leave(self, number: int) -> None:
        """Enter that the waiting passes made nothing for an optimizer."""
        for waiting in self._follow(number):
            self._resolve(waiting, number, None)

    def _resolve(self, waiting: _Pass, number: int, site: Site | None) -> None:
        waiting.pending.discard(number)
        if not waiting.pending and waiting.touched and not waiting.used:
            self.wasted = True
            self._add("discarded", waiting.site, site)
            self._lost[waiting.site] += 1

    def _stepped(self, event: ev.OptimizerStepped) -> None:
        number = event.optimizer
        if not (event.fresh or event.mixed or event.by_hand or event.closure):
            if event.cleared:
                self._clear(number, None)
            else:
                self._leave(number)
            return
        used = self._follow(number)
        if event.fresh and not used:  # another model has its turn at a line, and its tape was not read
            used = [one for one in self._recent if not one.used]
            for one in used:
                self._owners.pop(one.site, None)
        self._recent.clear()
        for one in used:
            one.pending.discard(number)
        self._use(used)
        if event.mixed:
            for site in self._spent.get(number, ()):
                self._add("again", site)
        self._spent[number] = [one.site for one in used]

    def _skipped(self, event: ev.ScalerStepped) -> None:
        if event.optimizer is None:
            return
        for waiting in self._follow(event.optimizer):
            waiting.pending.discard(event.optimizer)
            if not waiting.used:
                waiting.used = True
                self._add("skipped", waiting.site)

    def _moved(self) -> None:
        waiting = {id(one): one for passes in (*self._open.values(), self._loose) for one in passes}
        self._use(list(waiting.values()))
        for number in list(self._open):
            self._follow(number)
        self._loose.clear()

    def _use(self, passes: list[_Pass]) -> None:
        sites = {one.site: None for one in passes if not one.used}
        for one in passes:
            if not one.used:
                one.used = True
                self._add("used", one.site)
        for site in sites:
            lost = self._lost.pop(site, 0)
            self._add("lost", site, lost)
            if self._behind and lost > 1:
                self._add("behind", site)

    def _add(self, what: str, site: Site | None, detail: Site | int | None = None) -> None:
        self.tally.add((what, site, detail))


def _facts(line: PassLine) -> dict[str, object]:
    discarded = [{"by": line_of(site), "passes": count} for site, count in line.discarded.items()]
    return {
        "site": line_of(line.site),
        "made": line.made,
        "used": line.used,
        "used_again": line.again,
        "skipped": line.skipped,
        "discarded": discarded,
    }
