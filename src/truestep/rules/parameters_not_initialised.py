"""Evidence from the version counter of a parameter, and from the source of its class."""

from __future__ import annotations

from collections.abc import Iterator

from truestep.events import Event, ParameterUnwritten, Site
from truestep.findings import Mark, Severity
from truestep.rules._formulas import program_of, site_of, text_of
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import unwritten
from truestep.syntax import Program, Suspicion


class ParametersNotInitialised(Rule):
    """A parameter is made by `torch.empty` and never initialised: it has the values that were in memory before.

    What it does
    ------------
    Finds parameters of a model with a gradient and a version counter of zero before their first update, which no
    operation has written to, that their class makes by ``torch.empty``, ``torch.Tensor(rows, columns)`` or the like.
    Reports them if they have the values that they were registered with, and no file of the program writes to them in a
    way that this counter does not count, such as ``.data``. Values that are all equal, such as zeros, are reported only
    if the program initialises no parameters at all.

    Why it matters
    --------------
    The memory holds zeros, or values that the program has just freed: images, indices, parts of other weights. The
    results differ from machine to machine, a seed does not help, and now and then the loss is NaN. In the proof, the
    memory held pixels from 0 to 255, and the accuracy is 0.61 instead of 0.96.

    Example
    -------
    ::

        class Scaled(nn.Module):
            def __init__(self, inputs, outputs):
                super().__init__()
                self.weight = nn.Parameter(torch.empty(outputs, inputs))    # no values yet

    Fix
    ---
    Initialise it::

                nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))

    Known false alarms
    ------------------
    Zeros that code outside of the program writes through ``.data`` to memory that was zero before. Not reported:
    parameters that an initialisation or a loaded state has written to, also after a first call or backward pass,
    copies of such parameters, parameters without a gradient, names that a file of the program writes to, and programs
    that load whole models.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.empty.html
    - https://docs.pytorch.org/docs/stable/nn.init.html
    """

    id = "parameters-not-initialised"
    since = "0.1"
    severity = Severity.ERROR
    account = "parameters"
    watches = (ParameterUnwritten,)
    needs = (ParameterUnwritten,)
    explains = ("loss-at-chance", "nan-or-inf", "parameters-without-effect", "symmetric-initialisation")

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return unwritten.parameters_not_initialised(program)

    def observe(self, event: Event, run: Progress) -> None:
        made = _made(event) if isinstance(event, ParameterUnwritten) else None
        if made is None or not isinstance(event, ParameterUnwritten):
            return
        site, found = made
        texts = [_text(path, event) for path in dict.fromkeys((*(path for _, path in event.owners), *event.files))]
        if unwritten.is_written(event.name, texts) or (not event.compared and unwritten.may_write_all(texts)):
            return
        self.report(
            site,
            found.message,
            run=run,
            label=found.label,
            related=(Mark(event.site, f"calls `{run.model_name(event.model)}`"),),
            help=found.help,
            unit="parameters",
        )


def _text(path: str, event: ParameterUnwritten) -> str:
    """Return the parts of a file that may write to a parameter; all of it without first values to compare with."""
    program = program_of(path) if event.compared else None
    return (
        text_of(path) if program is None else unwritten.of_others(program, event.name, [one for one, _ in event.owners])
    )


def _made(event: ParameterUnwritten) -> tuple[Site, Suspicion] | None:
    """Return the line where a class makes a parameter of memory; None if it makes it in another way."""
    for owner, path in event.owners:
        program = program_of(path)
        for one in () if program is None else unwritten.unwritten(program):
            if program is not None and (one.owner, one.name) == (owner, event.name):
                found = unwritten.suspicion(one)
                return site_of(path, program.tree, found.node), found
    return None
