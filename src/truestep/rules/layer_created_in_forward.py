from __future__ import annotations

from collections.abc import Iterator

from truestep.events import Event, ModelCalled, Site, UnregisteredModuleCalled
from truestep.findings import Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import modules
from truestep.syntax import Program, Suspicion


class LayerCreatedInForward(Rule):
    """A layer with parameters is created again in every forward pass.

    What it does
    ------------
    Finds lines in a forward that, in repeated calls, run a module with trainable parameters created during the same
    call.

    Why it matters
    --------------
    The layer has new random weights in every call and is discarded afterwards. Nothing that it learns is kept, the rest
    of the model is trained against noise, and in evaluation the result changes from call to call.

    Example
    -------
    ::

        def forward(self, x):
            return nn.Linear(64, 10)(x)     # new weights every time

    Fix
    ---
    Create it once, in ``__init__``::

        def __init__(self):
            super().__init__()
            self.head = nn.Linear(64, 10)

        def forward(self, x):
            return self.head(x)

    Known false alarms
    ------------------
    A layer that is created with fixed weights in every call, such as an edge filter, is reported unless its parameters
    have ``requires_grad=False``. Layers created once, in the first call, are not reported.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.LazyLinear.html
    """

    id = "layer-created-in-forward"
    since = "0.1"
    severity = Severity.ERROR
    account = "parameters"
    watches = (UnregisteredModuleCalled, ModelCalled)
    needs = (ModelCalled,)
    explains = ("loss-at-chance", "parameters-not-optimized")

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return modules.layer_created_in_forward(program)

    def __init__(self) -> None:
        super().__init__()
        self._call = 0
        self._last: dict[Site | None, int] = {}
        self._first: dict[Site | None, int] = {}

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("fewer than two model calls" if self._call < 2 else "")

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ModelCalled():
                self._call += 1
            case UnregisteredModuleCalled(fresh=True):
                before = self._last.get(event.site)
                self._last[event.site] = self._call
                self._first.setdefault(event.site, run.step)
                held = any(run.held_by.get(p) for p in event.parameters)
                if before is not None and before != self._call and not held:
                    self._found(event, run)

    def _found(self, event: UnregisteredModuleCalled, run: Progress) -> None:
        name, met = run.model_name(event.model), run.models.get(event.model)
        draft = self.report(
            event.site,
            f"`{name}` creates a new {event.kind} in every forward pass",
            run=run,
            label=f"a {event.kind} with new weights",
            related=(Mark(met.site, f"`{name}` is called here"),) if met and met.site else (),
            help=f"create the {event.kind} once, in `__init__`, and assign it to `self`",
            unit="forward calls",
        )
        if draft.count == 1:
            draft.count, draft.first_step = 2, self._first[event.site]
        draft.cost = f"each of {draft.count} forward passes used different new weights"
