from __future__ import annotations

from dataclasses import dataclass, field

from truestep.accounts._account import amount
from truestep.events import Event, ResultDifferentiated, RunEnded
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import FINISHED, steps
from truestep.rules._rule import Progress, Rule

_LEAST = 4
_LEAST_STEPS = 20
_LEAST_COLUMNS = 2
Ranges = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class _Result:
    """The passes through one result that were read."""

    first: ResultDifferentiated
    begun: int
    """Step of the first pass that was read."""
    latest: int = 0
    passes: int = 0
    dead: set[Ranges] = field(default_factory=set)
    own: bool = False
    asked: bool = False
    unused: set[Ranges] = field(default_factory=set)
    whole: int = 0
    """Passes through a result for the largest batch so far."""


class OutputsWithoutEffect(Rule):
    """Half of the columns of a result, or of its samples, never get a gradient: the loss is computed from the others.

    What it does
    ------------
    Reads, in the backward passes of sampled steps, the gradient that arrives at the result of a model. At the end of
    the run, reports a result with at least half of its columns (classes, channels, targets) at the same places and two
    of them or more without a gradient in all samples of all these passes, if weights of the model belong to these
    columns alone, so that nothing trains them. The confidence is low unless a variable next to the call, other than
    the inputs, has a value for each column, as targets do. Also reports a result for a whole batch of a ``DataLoader``
    with at least half of the samples, at the same places of every batch, without a gradient.

    Why it matters
    --------------
    An index that is left over from a trial, or ``out[0]`` where a tuple became a tensor, makes the loss one of a part.
    The loss falls, and the other outputs stay those of random weights. In the proof, four
    targets are explained with a share of 0.08 of their variance instead of 0.81.

    Example
    -------
    ::

        out = model(x)                                  # four targets
        loss = F.mse_loss(out[:, 0], y[:, 0])

    Fix
    ---
    Compute the loss of all columns and all samples::

        loss = F.mse_loss(out, y)

    Known false alarms
    ------------------
    A network with spare outputs, of which a run uses only some by an index: low confidence. Not reported: gradients at
    other places in other batches or samples (actions that are gathered, masks, satisfied margins), columns that another
    loss or a later stage of the run uses, positions of a sequence, parts of a tuple, columns of shared weights, models
    of installed libraries, loaded weights, one of two columns, and samples of batches that the script joins itself.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/autograd.html
    - https://docs.pytorch.org/docs/stable/generated/torch.autograd.graph.Node.register_prehook.html
    """

    id = "outputs-without-effect"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "loss"
    watches = (ResultDifferentiated,)
    needs = (ResultDifferentiated, steps(_LEAST_STEPS), FINISHED)
    asks = "the loss depends on all columns and samples of the result"
    explains = ("parameters-without-effect",)

    def __init__(self) -> None:
        super().__init__()
        self._results: dict[tuple[int, str], _Result] = {}

    def observe(self, event: Event, run: Progress) -> None:
        """Collect the passes: a later stage of the run may use the other columns."""
        self._add(event, 1, run.step)

    def again(self, event: Event, times: int) -> None:
        self._add(event, times)

    def _add(self, event: Event, times: int, step: int = 0) -> None:
        if not isinstance(event, ResultDifferentiated):
            return
        known = self._results.setdefault((event.model, event.part), _Result(event, step))
        known.latest = max(known.latest, step)
        known.passes += times
        known.dead.add(event.dead)
        known.own |= event.own
        known.asked |= event.asked
        if known.first.place is None and event.place is not None:
            known.first = event
        if event.samples > known.first.samples:
            known.first, known.whole = event, 0
            known.unused.clear()
        if event.samples == known.first.samples:
            known.whole += times
            known.unused.add(event.unused)

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how != "finished" or run.step < _LEAST_STEPS:
            return
        for known in self._results.values():
            model = run.models.get(known.first.model)
            if model is None or model.installed or any(p in run.weights.loaded for p in model.parameters):
                continue
            if event.given_up and 2 * (known.latest - known.begun) < run.step - known.begun:
                continue  # a later stage was not read
            if known.passes >= _LEAST and known.own and len(known.dead) == 1:
                self._columns(known, next(iter(known.dead)), run)
            elif known.whole >= _LEAST and len(known.unused) == 1:
                self._samples(known, next(iter(known.unused)), run)

    def _columns(self, known: _Result, dead: Ranges, run: Progress) -> None:
        first, count = known.first, sum(end - begin for begin, end in dead)
        if count >= _LEAST_COLUMNS:
            name = run.model_name(first.model)
            self._found(
                known,
                f"the loss is computed from {first.columns - count} of {first.columns} columns of the result of "
                f"`{name}`",
                f"{_places('column', dead)} never get a gradient",
                f"the weights behind {amount(count, 'column')} get no gradient either",
                "compute the loss from all columns, or give the model fewer",
                run,
                Confidence.MEDIUM if known.asked else Confidence.LOW,
            )

    def _samples(self, known: _Result, unused: Ranges, run: Progress) -> None:
        first, count = known.first, sum(end - begin for begin, end in unused)
        if count:
            self._found(
                known,
                f"the loss is computed from {first.samples - count} of the {first.samples} samples of each batch",
                f"{_places('sample', unused)} never get a gradient",
                f"{amount(count, 'sample')} of each batch train nothing",
                "compute the loss from all samples of the batch",
                run,
            )

    def _found(
        self,
        known: _Result,
        message: str,
        label: str,
        cost: str,
        help: str,
        run: Progress,
        confidence: Confidence = Confidence.MEDIUM,
    ) -> None:
        first = known.first
        related = ((Mark(first.site, "the call of the model"),) if first.place is not None else ()) + (
            (Mark(first.loss, "the backward pass"),) if first.loss is not None else ()
        )
        draft = self.report(
            first.place or first.site,
            message,
            run=run,
            label=label,
            related=related,
            cost=cost,
            help=help,
            confidence=confidence,
            unit="backward passes read",
            key=(first.model, first.part),
        )
        draft.count = draft.total = known.passes
        draft.first_step = None


def _places(word: str, ranges: Ranges) -> str:
    """Return ranges in words.

    >>> _places("column", ((1, 4), (6, 7)))
    'columns 1 to 3 and 6'
    """
    texts = [str(begin) if end == begin + 1 else f"{begin} to {end - 1}" for begin, end in ranges]
    one = len(ranges) == 1 and ranges[0][1] == ranges[0][0] + 1
    return f"{word}{'' if one else 's'} {' and '.join(texts)}"
