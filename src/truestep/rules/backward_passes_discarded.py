from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep import events as ev
from truestep import source
from truestep.accounts import PassLine
from truestep.events import Event, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import steps
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.steps import missing
from truestep.rules._syntax.steps.refused import is_refused
from truestep.syntax import Program, Suspicion

_LEAST_STEPS = 3
_LEAST_TURNS = 3
_LEAST_WHOLE = 5
"""Turns between steps of other lines, and passes, of a line of which no pass is used."""
_LONGEST = 40
"""Longer strings are texts for people."""
_READ = ("grad", "hook", "perf_counter", "profile", "timeit")
"""Parts of names with which a program reads gradients, or measures the time that they take."""
_REGULAR = 0.8
"""Least share of the steps before which the same number of passes was lost, or all but one of a pass over a loader."""
_MOSTLY = 4
"""Least number of passes lost for each one used, where they were not counted step by step."""


class BackwardPassesDiscarded(Rule):
    """Most backward passes of a line are cleared before any step uses them.

    What it does
    ------------
    Follows every backward pass to the step that uses its gradients, or to the call that clears them. Reports a line if
    some of its passes are used, at least as many are cleared unused, and the same number is lost before each step,
    or each step comes behind a pass over a DataLoader. Also reports a line of which all passes are cleared, in
    turn with steps on the passes of other lines, if nothing in its file reads gradients.

    Why it matters
    --------------
    The lost passes cost their time and change nothing. A window that is meant to hold four batches holds one, with a
    gradient that is noisier and, if the loss is divided by four, four times too small. A step behind the loop over the
    batches learns from one batch per epoch.

    Example
    -------
    ::

        for micro in range(4):
            optimizer.zero_grad()       # clears the batches before this one
            loss = criterion(model(x[micro]), y[micro]) / 4
            loss.backward()
        optimizer.step()                # on the last of four

    Fix
    ---
    Clear once per step::

        optimizer.zero_grad()
        for micro in range(4):
            loss = criterion(model(x[micro]), y[micro]) / 4
            loss.backward()
        optimizer.step()

    Known false alarms
    ------------------
    A line search that evaluates the same number of points with gradients before each step. Not reported: gradients for
    an input, gradients that the same loop or function reads, or a function of the file that it calls, a norm of
    ``clip_grad_norm_`` that the program uses, lines with passes that are all discarded before or after the training,
    passes of one network that another network clears, closures, and steps that a condition on the loss skips.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html
    - https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation
    """

    id = "backward-passes-discarded"
    since = "0.1"
    severity = Severity.ERROR
    account = "gradients"
    explains = ("loss-at-chance",)
    watches = (ev.OptimizerStepped, ev.HandStepped, ev.TapeRead)
    needs = (ev.BackwardEnded, ev.OptimizerStepped, steps(_LEAST_STEPS))

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        yield from missing.backward_passes_discarded(program)
        yield from missing.cleared_in_windows(program)

    def __init__(self) -> None:
        super().__init__()
        self._whole: dict[Site | None, tuple[int, int]] = {}
        """Line of which no pass is used, to the passes that were cleared up to the latest step, and its turns."""
        self._reached: dict[Site | None, set[int]] = {}
        """Line to the parameters that its passes reach."""
        self._stepped: set[int] = set()

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, ev.TapeRead):
            self._reached.setdefault(event.site, set()).update(event.reached)
            return
        if isinstance(event, ev.OptimizerStepped):
            self._stepped.add(event.optimizer)
        if run.gradients.wasted:
            for site, line in run.gradients.lines().items():
                before, turns = self._whole.get(site, (0, 0))
                if not line.used and line.wasted > before:
                    self._whole[site] = line.wasted, turns + 1
        self._look(run)

    def ended(self, event: ev.RunEnded, run: Progress) -> None:
        self._look(run)

    def unobserved(self, run: Progress) -> str:
        excused = any(line.elsewhere and self._is_wasteful(line) for line in run.gradients.lines().values())
        return super().unobserved(run) or ("gradients may be read by the script" if excused else "")

    def _look(self, run: Progress) -> None:
        if not run.gradients.wasted:
            return
        for site, line in run.gradients.lines().items():
            if not line.elsewhere and self._is_wasteful(line) and not is_refused(site):
                self._tell(site, line, run)
            elif self._is_in_vain(site, line, run):
                self._tell_whole(site, line, run)
            else:
                self.withdraw(site)

    @staticmethod
    def _is_wasteful(line: PassLine) -> bool:
        """Return True if a line loses passes before each step, and not fewer than are used."""
        stepped = sum(line.lost.values())
        if not line.used or line.wasted < line.used or stepped < _LEAST_STEPS:
            return False
        if sum(number * times for number, times in line.lost.items()) < _REGULAR * line.wasted:
            # Steps of another optimizer lie between: only the totals of such a line are exact.
            return line.wasted >= _MOSTLY * line.used
        number, times = line.lost.most_common(1)[0]
        return number > 0 and max(times, line.behind) >= _REGULAR * stepped

    def _is_in_vain(self, site: Site | None, line: PassLine, run: Progress) -> bool:
        """Return True if all passes of a line are cleared by calls, between steps on the same parameters, and not read.

        An optimizer that has not stepped may begin later than a short run.
        """
        if line.used or line.skipped or line.elsewhere is not False or None in line.discarded or site is None:
            return False
        if line.wasted < max(_LEAST_WHOLE, line.made - 1) or self._whole.get(site, (0, 0))[1] < _LEAST_TURNS:
            return False
        owners = [run.held_by.get(number, set()) for number in self._reached.get(site, ())]
        return all(not self._stepped.isdisjoint(one) for one in owners) and _is_without_use(site)

    def _tell_whole(self, site: Site | None, line: PassLine, run: Progress) -> None:
        clearing = max(line.discarded, key=lambda by: line.discarded[by])
        draft = self.report(
            site,
            "the gradients of this line are always cleared, and no step uses them",
            run=run,
            label=f"{line.made:,} backward passes, none used by a step",
            related=(Mark(clearing, "clears gradients that no step has used"),) if clearing is not None else (),
            help="step after the backward pass",
            confidence=Confidence.MEDIUM,
            key=site,
        )
        draft.count, draft.total, draft.unit = line.wasted, line.made, "backward passes"
        draft.cost = "the backward passes of this line changed nothing (counted)"

    def _tell(self, site: Site | None, line: PassLine, run: Progress) -> None:
        (number, times), steps = line.lost.most_common(1)[0], sum(line.lost.values())
        clearing = max(line.discarded, key=lambda by: line.discarded[by])
        most = max(number, line.wasted // line.used)
        passes = f"{most} backward pass" + ("es" if most > 1 else "")
        if times < _REGULAR * steps and max(line.lost) >= most:
            passes = f"up to {max(line.lost)} backward passes"
        made = Mark(site, f"{line.made:,} backward passes, {line.used:,} used by a step")
        where = clearing if clearing is not None else site
        draft = self.report(
            where,
            f"the gradients of {passes} were cleared before each step, and no step used them",
            run=run,
            label="clears gradients that no step has used" if clearing is not None else made.label,
            related=(made,) if clearing is not None else (),
            help="step after each backward pass, or clear gradients once per step, not once per batch",
            key=site,
        )
        draft.confidence = Confidence.MEDIUM if line.elsewhere is None else Confidence.HIGH
        draft.related = (made,) if clearing is not None else ()
        draft.count, draft.total, draft.unit = line.wasted, line.made, "backward passes"
        draft.cost = f"{line.wasted / line.made:.0%} of the backward passes of this line changed nothing (counted)"


def _is_without_use(site: Site) -> bool:
    """Return True if nothing in a file reads gradients, or their time, and nothing steps around a line.

    A step under a condition may come later than the end of a short run.
    """
    tree = source.parsed(site.path)
    if tree is None:
        return False
    kept = {"zero_grad", "no_grad", "requires_grad", "requires_grad_", "set_grad_enabled", "enable_grad"}
    names = {node.attr for node in source.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.id for node in source.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.value for node in source.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is str}
    if any(part in name.lower() for name in names - kept for part in _READ if len(name) < _LONGEST):
        return False
    around: ast.AST = tree
    for node in source.walk(tree):
        if isinstance(node, ast.For | ast.While | ast.FunctionDef) and node.lineno < site.line <= (
            node.end_lineno or 0
        ):
            around = node if around is tree or node.lineno > around.lineno else around  # type: ignore[attr-defined]
    return not any(isinstance(node, ast.Attribute) and node.attr == "step" for node in source.walk(around))
