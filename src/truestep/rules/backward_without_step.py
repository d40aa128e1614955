from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep import events as ev
from truestep import source
from truestep.events import Event, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import FINISHED
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.steps import missing
from truestep.syntax import Program, Suspicion, dotted

_LEAST = 10
"""Least number of backward passes from one line, and of calls of zero_grad that show the intention to step."""


class BackwardWithoutStep(Rule):
    """Backward passes compute gradients for the parameters of an optimizer that never steps.

    What it does
    ------------
    At the end of a finished run, reports optimizers that never stepped although backward passes reached parameters that
    only they hold. Either one of several optimizers was forgotten, or no optimizer stepped at all, because the call is
    missing or an accumulation window is never full.

    Why it matters
    --------------
    These parameters keep their initial values. The rest of the model learns around them, so the loss falls and nothing
    looks broken.

    Example
    -------
    ::

        encoder_optimizer.zero_grad()
        head_optimizer.zero_grad()
        loss.backward()
        head_optimizer.step()           # encoder_optimizer never steps

    Fix
    ---
    Step every optimizer with parameters that the loss should train::

        loss.backward()
        encoder_optimizer.step()
        head_optimizer.step()

    Known false alarms
    ------------------
    An optimizer that is built, cleared in each iteration, and intended to start only after the end of this run. Not
    reported: parameters that are updated by hand, optimizers with parameters that another one steps, and runs that
    stopped early or crashed.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/optim.html#taking-an-optimization-step
    """

    id = "backward-without-step"
    since = "0.1"
    severity = Severity.ERROR
    account = "gradients"
    missing_call = "step"
    watches = (
        ev.BackwardEnded,
        ev.GradientsZeroed,
        ev.HandStepped,
        ev.ModelCalled,
        ev.OptimizerStepped,
        ev.ParametersUnchanged,
        ev.ScalerStepped,
        ev.TapeRead,
    )
    needs = (ev.BackwardEnded, ev.OptimizerBuilt, FINISHED)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return missing.backward_without_step(program)

    def __init__(self) -> None:
        super().__init__()
        self._backwards: dict[Site | None, int] = {}
        self._reached: dict[Site | None, set[int]] = {}
        self._stepped: set[int | None] = set()
        self._zeroed: dict[int, int] = {}
        self._zeroed_models: dict[int, int] = {}
        """Model to the number of times that its own `zero_grad` was called."""
        self._unchanged: frozenset[int] = frozenset()
        self._piling: set[Site | None] = set()
        """Backwards of batches that added to gradients that no step had used yet."""
        self._by_hand = self._trained = False

    def observe(self, event: Event, run: Progress) -> None:
        self._count(event, 1)
        match event:
            case ev.BackwardEnded(onto_fresh=piled, loader=int()) if piled:
                self._piling.add(event.site)
            case ev.TapeRead():
                self._reached.setdefault(event.site, set()).update(event.reached)
            case ev.OptimizerStepped() | ev.ScalerStepped():
                self._stepped.add(event.optimizer)
            case ev.HandStepped():
                self._by_hand = True
            case ev.ModelCalled(training=True, tracked=True):
                self._trained = True
            case ev.ParametersUnchanged():
                self._unchanged = frozenset(event.parameters)

    def again(self, event: Event, times: int) -> None:
        self._count(event, times)

    def _count(self, event: Event, times: int) -> None:
        match event:
            case ev.BackwardEnded(in_step=False, written=written) if written:
                self._backwards[event.site] = self._backwards.get(event.site, 0) + times
            case ev.GradientsZeroed(optimizer=int() as number):
                self._zeroed[number] = self._zeroed.get(number, 0) + times
            case ev.GradientsZeroed(model=int() as number):
                self._zeroed_models[number] = self._zeroed_models.get(number, 0) + times

    def unobserved(self, run: Progress) -> str:
        idle = run.optimizers.keys() - self._stepped
        few = bool(idle) and max(self._backwards.values(), default=0) < _LEAST
        return super().unobserved(run) or (f"fewer than {_LEAST} backward passes of one line" if few else "")

    def ended(self, event: ev.RunEnded, run: Progress) -> None:
        if event.how != "finished" or not self._trained:
            return
        moving = {p for p, owners in run.held_by.items() if owners & self._stepped}
        for number, built in run.optimizers.items():
            own = {p for p, owners in run.held_by.items() if number in owners} - moving
            if number in self._stepped or not own or (self._by_hand and not own <= self._unchanged):
                continue
            site = self._most_reaching(own)
            if site is not None:
                self._report(number, built, own, site, run)

    def _most_reaching(self, own: set[int]) -> Site | None:
        """Return the most frequent backward that reaches these parameters; None if none ran `_LEAST` times."""
        counts = {
            site: count
            for site, count in self._backwards.items()
            if count >= _LEAST and (own & self._reached.get(site, set()) or not self._reached)
        }
        return max(counts, key=lambda site: counts[site], default=None)

    def _is_for(self, own: set[int], site: Site, run: Progress) -> bool:
        """Return True if a backward pass reaches these parameters alone, which `zero_grad` of their model clears."""
        cleared = (
            run.models[one] for one, count in self._zeroed_models.items() if count >= _LEAST and one in run.models
        )
        return own >= self._reached.get(site, own | {-1}) and any(own <= set(model.parameters) for model in cleared)

    def _report(self, number: int, built: ev.OptimizerBuilt, own: set[int], site: Site, run: Progress) -> None:
        confidence = Confidence.LOW
        cleared = self._zeroed.get(number, 0) >= _LEAST
        cleared |= bool(self._stepped) and self._is_for(own, site, run) and not _may_step(built)
        if cleared and (not self._stepped or own & self._unchanged):
            confidence = Confidence.HIGH
        elif not self._stepped and site in self._piling:
            confidence = Confidence.MEDIUM
        count = self._backwards[site]
        draft = self.report(
            site,
            f"backward computed gradients for the parameters of `{built.name}`, which never stepped",
            run=run,
            label="computes gradients that no step uses",
            related=(Mark(built.site, f"{built.name} holds {len(own)} parameters that no other optimizer steps"),),
            help=f"call `{built.name}.step()` after the backward pass",
            cost=f"{len(own)} parameters kept their initial values" if own <= self._unchanged else "",
            confidence=confidence,
            unit="backward passes",
            key=(site, number),
        )
        draft.count, draft.total, draft.first_step = count, count, None


def _may_step(built: ev.OptimizerBuilt) -> bool:
    """Return True if the file that builds an optimizer steps it somewhere: the run may have ended before."""
    tree = source.parsed(built.site.path) if built.site is not None else None
    calls = (node for node in source.walk(tree) if isinstance(node, ast.Call)) if tree is not None else ()
    return any(dotted(call.func) == f"{built.name}.step" for call in calls)
