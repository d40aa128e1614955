from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from truestep import events as ev
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import modules
from truestep.syntax import Program, Suspicion


class ForwardCalledDirectly(Rule):
    """`forward` of a module is called directly, which skips its hooks.

    What it does
    ------------
    Finds calls of ``module.forward(...)`` in user code, and counts the hooks that each of them skipped.

    Why it matters
    --------------
    ``module(...)`` runs forward hooks and pre-hooks as well as ``forward``. Pruning, the older weight and spectral
    normalisation, feature extraction, quantisation observers and profilers are implemented as hooks. If they are
    skipped, a pruned weight keeps its value from the last time the mask was applied, and features are not recorded.

    Example
    -------
    ::

        output = model.forward(x)           # hooks are silently ignored

    Fix
    ---
    Call the module::

        output = model(x)

    Known false alarms
    ------------------
    A call that skipped no hook has no effect in this run and is reported with low confidence.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.forward
    """

    id = "forward-called-directly"
    since = "0.1"
    severity = Severity.WARNING
    account = "calls"
    watches = (ev.ForwardCalledDirectly,)
    needs: ClassVar[tuple[type[ev.Event], ...]] = ()

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return modules.forward_called_directly(program)

    def unobserved(self, run: Progress) -> str:
        return "" if {ev.ModelCalled, ev.ForwardCalledDirectly} & run.met else ev.ModelCalled.absent

    def observe(self, event: ev.Event, run: Progress) -> None:
        match event:
            case ev.ForwardCalledDirectly(hooks=hooks, name=name):
                known = ", ".join(dict.fromkeys(event.hook_names))
                skipped = f"{hooks} {'hook' if hooks == 1 else 'hooks'} skipped{f': {known}' if known else ''}"
                draft = self.report(
                    event.site,
                    f"`{name}.forward` was called directly",
                    run=run,
                    label=skipped if hooks else f"{event.kind}, which has no hooks",
                    help=f"call `{name}(...)` instead of `{name}.forward(...)`",
                    cost=f"{skipped} in each call" if hooks else "",
                    confidence=Confidence.HIGH if hooks else Confidence.LOW,
                    unit="calls",
                )
                if hooks and draft.confidence is Confidence.LOW:  # hooks were added later
                    draft.confidence, draft.cost = Confidence.HIGH, f"{skipped} in each call"
                    draft.primary = Mark(event.site, skipped)
