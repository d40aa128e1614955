"""Evidence from the source of a loop that calls a model, and from the number of its calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from truestep.accounts.calls import CallLine
from truestep.events import (
    Event,
    FunctionCalled,
    HandStepped,
    LoopRead,
    ModelCalled,
    OptimizerStepped,
    RunEnded,
    Site,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.data import results
from truestep.syntax import Program, Suspicion

_LEAST = 4
"""Least number of calls in the loop."""
_SEVERAL = 2
"""Calls in one run of the loop."""
_MESSAGE = {
    "divided": ("`{}` holds the last pass of a loop only, and is divided by a total", "add up: `{} += ...`"),
    "divisor": ("`{}` holds the length of the last batch only, and divides a total", "add up: `{} += ...`"),
    "differentiated": ("`{}` holds the last pass of a loop only, and is differentiated", "add up: `{} = {} + ...`"),
    "kept": ("`{}` grows over all epochs, and is divided by the total of one", "set to zero in each epoch: `{} = 0`"),
    "read": ("`{}` holds the last pass of a loop only, and is read as its result", "add up: `{} += ...`"),
}
"""Failure and remedy, by the use of the variable."""


class SumOverwritten(Rule):
    """A sum over a loop is overwritten in each pass or never set to zero, so that it is not the sum of that loop.

    What it does
    ------------
    Reads the source of the innermost loop around each call of a model. Reports a variable that is set to zero before
    the loop, overwritten in each pass, never read in the loop, and divided, used as a divisor or differentiated
    behind it, if the loop made several calls in a row. Reports a single number that an evaluation makes of results
    and of a part of the batch that the model was not called on, if each pass overwrites it, the code behind the
    loop reads it, and neither the loop nor a function that it calls keeps anything else. A batch is the value of the
    loop, or its slice of a whole set, such as ``x[i:i + 128]``. Reports the results of a batch in the same way, if the
    code behind the loop compares them with the targets of that batch. Reports a sum that is set to zero once, before
    the loop over the epochs, and divided in each epoch by the total of one.

    Why it matters
    --------------
    A metric is that of the last batch, divided by the size of the whole set: it is far too small, and early stopping
    follows its noise. A loss over time steps is that of the last step alone, and the others are never learned. In the
    proof, a model that writes six tokens gets 19 % of them right instead of 100 %. In a second one, the last batch of a
    validation has eight samples and chooses the epoch of which the model is kept: its accuracy is 0.83 instead of 0.93.

    Example
    -------
    ::

        loss = 0
        for t in range(length):
            output, state = decoder(token, state)
            loss = criterion(output, target[t])         # the losses before are lost
        loss.backward()

    Fix
    ---
    ::

            loss = loss + criterion(output, target[t])

    Known false alarms
    ------------------
    A loss of the last step on purpose, in a variable that is set to zero before the loop. Not reported: variables that
    are read in the loop, assignments under a condition, loops with one pass, the last loss of a training loop, running
    means, and the prediction or the picture of the last batch; also a figure that the program calls one of the last
    batch, of a sample or an example, and growing parts or windows of a set.

    References
    ----------
    - https://docs.pytorch.org/tutorials/intermediate/seq2seq_translation_tutorial.html
    """

    id = "sum-overwritten"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "calls"
    watches = (LoopRead, ModelCalled, FunctionCalled, OptimizerStepped, HandStepped)
    needs = (LoopRead,)
    explains = ("loss-never-differentiated", "metric-misreported")

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return results.sum_overwritten(program)

    def __init__(self) -> None:
        super().__init__()
        self._loops: dict[LoopRead, None] = {}
        self._evaluations: Counter[Site | None] = Counter()
        """Line to its calls without a gradient of a function that is a model."""
        self._rows: Counter[Site | None] = Counter()
        """The same to the number of rows of such calls, with no step between them."""
        self._open: set[Site | None] = set()

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case LoopRead() if event.name:
                self._loops[event] = None
            case FunctionCalled(tracked=False):
                self._evaluations[event.site] += 1
                self._rows[event.site] += event.site not in self._open
                self._open.add(event.site)
            case OptimizerStepped() | HandStepped():
                self._open.clear()

    def ended(self, event: RunEnded, run: Progress) -> None:
        lines = {(line.model, line.site): line for line in run.calls.lines()}
        for loop in self._loops:
            line = lines.get((loop.model, loop.site))
            if line is None or not _has_several(line, loop, run):
                calls, rows = self._evaluations[loop.site], self._rows[loop.site]
                if calls < max(_LEAST, _SEVERAL * rows) or loop.use == "kept":
                    continue
            message, help = _MESSAGE[loop.use]
            self.report(
                loop.place,
                message.format(loop.name),
                run=run,
                label="adds to the epochs before" if loop.use == "kept" else "overwrites the value of the pass before",
                related=(Mark(loop.site, "called in each pass"),),
                help=help.format(loop.name, loop.name),
                unit="loops",
            )


def _has_several(line: CallLine, loop: LoopRead, run: Progress) -> bool:
    """Return True if one run of the loop made several calls."""
    trained, apart = sum(line.trained.values()), sum(line.apart.values())
    if trained + apart < _LEAST or (loop.use == "read" and trained):
        return False
    if loop.use == "kept" and not trained:
        return line.blocks >= _SEVERAL
    in_a_row = apart >= _SEVERAL * line.blocks or trained >= _SEVERAL * max(1, run.calls.passes(line.model))
    return loop.trains or in_a_row
