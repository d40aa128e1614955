from __future__ import annotations

from truestep.accounts._account import amount
from truestep.events import (
    ColumnsUnread,
    Event,
    InputRepeated,
    ParameterMet,
    ParametersUnchanged,
    RunEnded,
    Site,
    TapeRead,
    TwinIdle,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import FINISHED, steps
from truestep.rules._rule import Progress, Rule

_LEAST_STEPS = 10
_LEAST_PASSES = 3
"""Backward passes in which a layer had repeated inputs."""


class ParametersWithoutEffect(Rule):
    """An optimizer holds parameters that never got a gradient, or gradients of zeros only.

    What it does
    ------------
    At the end of a run, looks for trainable parameters that an optimizer holds, that have kept their first values
    although it moved others, and that no loss has reached: their layer ran and its output was not used, or the
    parameter was read as a number. Reports also a layer that never ran, if another one of its kind and shape ran in two
    places of its module; layers with gradients that were zero in every element at each sampled step: their output is
    multiplied by zero, or cut off by a limit; and optimizers with such parameters only. Also reports a linear layer or
    a convolution that got the same result twice in all its calls, joined along its features, in the first passes: the
    weights of the second one add nothing to those of the first. Reports outputs of a linear layer that the loss
    does not read, while it selects another output twice, by ``out[:, 0]`` or a split: they have kept their weights at
    the end.

    Why it matters
    --------------
    A part of the model has no part in the training. Nothing fails: the rest of the model adapts to its absence. In the
    proof, a skip connection joins the encoder with itself, and the layer that brings the coarse features back is
    trained by nothing.

    Example
    -------
    ::

        def forward(self, x):
            fine = self.encoder(x)
            coarse = self.up(self.bottleneck(fine))
            return self.decoder(torch.cat([fine, fine], dim=1))     # meant: [fine, coarse]

    Fix
    ---
    Use the output of the layer, or delete the layer::

        return self.decoder(torch.cat([fine, coarse], dim=1))

    Known false alarms
    ------------------
    A layer that runs for its output alone, such as a head that is read and not trained. A result that is joined with
    itself to fill a layer which is given. Not reported: other layers that never ran, one of several like blocks, parts
    of a layer or whole models without any gradient, loaded weights, models of installed libraries, frozen parameters,
    and runs that did not finish; results that are joined along the samples or positions, without a layer behind them
    (rotary angles, heads), as a number of copies (``torch.cat([x] * 2, 1)``), more than
    two parts, parameters that fill a place, and a convolution behind a change of the order of dimensions.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/autograd.html
    - https://docs.pytorch.org/docs/stable/notes/ddp.html
    """

    id = "parameters-without-effect"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "parameters"
    watches = (ParametersUnchanged, InputRepeated, ColumnsUnread)
    needs = (TapeRead, ParametersUnchanged, steps(_LEAST_STEPS), FINISHED)

    def __init__(self) -> None:
        super().__init__()
        self._repeats: dict[int, list[InputRepeated]] = {}
        self._unread: list[ColumnsUnread] = []

    def observe(self, event: Event, run: Progress) -> None:
        """Judge at the end: a parameter that waits may still come into use."""
        if isinstance(event, InputRepeated):
            self._repeats.setdefault(event.parameter, []).append(event)
        if isinstance(event, ColumnsUnread):
            self._unread.append(event)

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how != "finished" or run.step < _LEAST_STEPS:
            return
        for optimizer, held in run.holds.items():
            if held and run.weights.zero.issuperset(held):
                self._all(optimizer, sorted(held), run)
            elif not run.weights.moved.isdisjoint(held):
                self._judge(optimizer, [p for p in sorted(held) if _counts(p, optimizer, run)], run)
        for numbers, twin in run.weights.twins.items():
            if all(_never_ran(number, run) for number in numbers):
                self._left_out(twin, run)
        for unread in self._unread:
            self._columns(unread, run)
        # A layer that another one replaces is the same failure.
        for parameter, events in self._repeats.items() if not self._drafts else ():
            if len(events) >= _LEAST_PASSES and all(event.width for event in events):
                self._repeated(parameter, events[0], run)

    def _columns(self, event: ColumnsUnread, run: Progress) -> None:
        """Report outputs that no loss reads, beside one that a loss reads twice."""
        met = run.parameters.get(event.parameter)
        model = run.models.get(met.model or 0) if met is not None else None
        if model is not None and model.installed:
            return
        name = run.parameter_names((event.parameter,)).removesuffix(".weight")
        unread, again = (_numbers(columns) for columns in (event.unread, event.again))
        draft = self.report(
            event.site,
            f"no loss reads output {unread} of `{name}`, and output {again} is selected more than once",
            run=run,
            label=f"reads output {again} in place of output {unread}",
            help="correct the index in one of the places, or make the layer smaller",
            unit="outputs",
            key=("columns", event.site, event.unread, event.again),
        )
        draft.count, draft.total, draft.first_step = len(event.unread), event.outputs, None
        draft.cost = f"its weights kept their first values through {run.step} steps"

    def _repeated(self, parameter: int, event: InputRepeated, run: Progress) -> None:
        """Report a layer that gets a result twice."""
        met = run.parameters.get(parameter)
        model = run.models.get(met.model or 0) if met is not None else None
        if model is None or model.installed or parameter in run.weights.loaded:
            return
        name = run.parameter_names((parameter,)).removesuffix(".weight")
        draft = self.report(
            event.site,
            f"{event.width} of the {event.inputs} inputs of `{name}` repeat others: a result is joined with itself",
            run=run,
            label="the same result twice",
            help="join it with the other result, or halve the inputs of the layer",
            unit="weights",
            key=(event.site, event.inputs),
        )
        draft.total = draft.first_step = None
        draft.cost = "the weights of the repeated inputs add nothing: the layer computes one of half the inputs"

    def _all(self, optimizer: int, held: list[int], run: Progress) -> None:
        """Report an optimizer without a gradient other than zero: nothing is trained."""
        name, sites = run.optimizer_name(optimizer), list(run.losses.lines)
        built = run.optimizers[optimizer].site if optimizer in run.optimizers else None
        draft = self.report(
            sites[0] if len(sites) == 1 else built,
            f"all gradients of the {amount(len(held), 'parameter')} of `{name}` are zero",
            run=run,
            label="no parameter has an effect on the loss",
            related=(Mark(built, f"`{name}` holds them"),) if built is not None and len(sites) == 1 else (),
            help="look for a factor of zero, a limit, or a saturated function between the parameters and the loss",
            unit="parameters",
            key=(optimizer, built),
        )
        draft.count = draft.total = len(held)
        draft.first_step = None
        draft.cost = f"the {run.step} steps trained nothing"

    def _left_out(self, twin: TwinIdle, run: Progress) -> None:
        """Report a layer that never ran, while another one ran in its place."""
        draft = self.report(
            twin.site,
            f"`{twin.name}` never ran, and `{twin.twin}` ran in two places",
            run=run,
            label=f"runs `{twin.twin}` again",
            related=(Mark(twin.first, "its first place"),) if twin.first is not None else (),
            help=f"call `{twin.name.rpartition('.')[2]}` in one of the two places, or delete it",
            unit="layers",
            key=(twin.first, twin.site, twin.name.rpartition(".")[2]),
        )
        draft.total = draft.first_step = None
        draft.cost = f"its {amount(len(twin.parameters), 'parameter')} kept their first values"

    def _judge(self, optimizer: int, idle: list[int], run: Progress) -> None:
        built = run.optimizers[optimizer].site if optimizer in run.optimizers else None
        groups: dict[Site | None, list[int]] = {}
        for parameter in idle:
            groups.setdefault(_place(parameter, run) or built, []).append(parameter)
        name = run.optimizer_name(optimizer)
        for site, found in groups.items():
            zero = run.weights.zero.issuperset(found)
            how = "gradients of zeros only" if zero else "no gradient in the whole run"
            draft = self.report(
                site,
                f"`{name}` holds {amount(len(found), 'parameter')} that got {how}",
                run=run,
                label=f"{run.parameter_names(tuple(found))}: "
                + ("all gradients are zero" if zero else "no loss reaches it"),
                related=(Mark(built, f"`{name}` holds them"),) if built is not None and built != site else (),
                help="use the result in the loss, with its gradient, or delete the parameters",
                unit="parameters",
                key=(optimizer, site),
            )
            draft.count, draft.total, draft.first_step = len(found), len(run.holds[optimizer]), None
            draft.cost = f"they kept their first values through {run.step} steps, while others moved"


def _numbers(columns: tuple[int, ...]) -> str:
    """Return a short list of columns.

    >>> _numbers((1,)), _numbers((0, 2)), _numbers(tuple(range(9)))
    ('1', '0, 2', '0, 1, 2, 3, ...')
    """
    return ", ".join(map(str, columns[:4])) + (", ..." if len(columns) > 4 else "")


def _counts(parameter: int, optimizer: int, run: Progress) -> bool:
    """Return True for an idle parameter of a layer that ran as a whole without effect, or of a variable."""
    met = run.parameters.get(parameter)
    if met is None or not run.weights.idle(parameter):
        return False
    model = run.models.get(met.model or 0)
    if model is None:
        return met.model is None and not met.name.startswith("parameter ")
    ran = run.weights.ran.get(parameter)
    if ran is None or model.installed or not all(run.weights.idle(other) for other in ran.parameters):
        return False
    if all(run.weights.idle(p) for p in model.parameters if p in run.holds.get(optimizer, ())):
        return False
    twins = [p for p in model.parameters if p in run.parameters and _kind(run.parameters[p]) == _kind(met)]
    return all(run.weights.idle(p) for p in twins)


def _never_ran(parameter: int, run: Progress) -> bool:
    """Return True for an idle parameter of an optimizer if its layer was never called, in a model of the program."""
    met = run.parameters.get(parameter)
    model = run.models.get(met.model or 0) if met is not None else None
    idle = run.weights.idle(parameter) and parameter not in run.weights.ran
    return idle and bool(run.held_by.get(parameter)) and model is not None and not model.installed


def _kind(met: ParameterMet) -> tuple[object, ...]:
    """Return a key that is equal for the same parameter in each of several blocks: ``blocks.0.back`` and others."""
    return tuple("*" if part.isdigit() else part for part in met.name.split(".")), met.shape


def _place(parameter: int, run: Progress) -> Site | None:
    """Return the line of the layer, the inner or the outer one, that no layer in use has; else that of its model."""
    ran = run.weights.ran.get(parameter)
    if ran is None:
        return None
    used = [one for p, one in run.weights.ran.items() if not run.weights.idle(p)]
    if ran.site not in {one.site for one in used}:
        return ran.site
    if ran.outer not in {one.outer for one in used}:
        return ran.outer
    model = run.models.get(run.parameters[parameter].model or 0)
    return ran.site if model is None else model.site
