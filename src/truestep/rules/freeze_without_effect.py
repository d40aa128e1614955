from __future__ import annotations

from collections.abc import Iterator

from truestep.events import Event, FreezeIgnored, ParametersUnchanged
from truestep.findings import Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import parameters
from truestep.syntax import Program, Suspicion

_LEAST_STEPS = 3


class FreezeWithoutEffect(Rule):
    """An attribute intended to freeze parameters has no effect, and the parameters are trained.

    What it does
    ------------
    Looks for modules with an attribute ``requires_grad = False`` and for parameters with a misspelt attribute such as
    ``require_grad = False``, if all their parameters are still trainable. Reports those that the loss reaches and an
    optimizer moves.

    Why it matters
    --------------
    Python allows setting any attribute on a module or a parameter, but torch reads only `requires_grad` of parameters.
    The part to be frozen is trained with everything else. In the proof, a small data set overwrites the features of a
    pretrained body, and its first task suffers.

    Example
    -------
    ::

        model.body.requires_grad = False        # a new attribute of the module
        for p in model.body.parameters():
            p.require_grad = False              # a new attribute of the parameter

    Fix
    ---
    Call the method of the module, which freezes all its parameters::

        model.body.requires_grad_(False)

    Known false alarms
    ------------------
    None known. Not reported: classes that use ``requires_grad`` in their own code, parameters that were frozen once and
    are trained again, parts that are also frozen correctly, and parts that no optimizer holds.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.requires_grad_
    - https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad
    """

    id = "freeze-without-effect"
    since = "0.1"
    severity = Severity.ERROR
    account = "parameters"
    watches = (FreezeIgnored, ParametersUnchanged)
    needs = (ParametersUnchanged,)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return parameters.freeze_without_effect(program)

    def __init__(self) -> None:
        super().__init__()
        self._ignored: dict[tuple[str, str, int], FreezeIgnored] = {}

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case FreezeIgnored():
                self._ignored[event.attribute, event.holder, event.model] = event
            case ParametersUnchanged() if event.steps >= _LEAST_STEPS:
                self._judge(run)
                self._ignored.clear()

    def _judge(self, run: Progress) -> None:
        facts = run.weights
        for ignored in self._ignored.values():
            moved = [p for p in ignored.parameters if p in facts.reached and p in facts.moved and run.held_by.get(p)]
            if moved:
                self._found(ignored, tuple(moved), run)

    def _found(self, event: FreezeIgnored, moved: tuple[int, ...], run: Progress) -> None:
        model = run.models.get(event.model)
        whole = run.model_name(event.model)
        part = f"{whole}.{event.holder}" if event.holder else whole
        name = run.optimizer_name(min(run.held_by[moved[0]]))
        what = (
            "`requires_grad` of a module is an attribute that nothing reads"
            if event.attribute == "requires_grad"
            else f"`{event.attribute}` is an attribute that nothing reads"
        )
        site = event.site or (model.site if model is not None else None)
        self.report(
            site,
            f"`{event.attribute} = False` froze nothing in `{part}`",
            run=run,
            label=what,
            related=(Mark(model.site, f"`{whole}` is called here"),) if model is not None and event.site else (),
            help="call `requires_grad_(False)` on the module",
            cost=f"`{name}` has moved {run.parameter_names(moved)}",
            unit="sampled steps",
            key=(event.attribute, min(moved)),
        )
