from __future__ import annotations

from dataclasses import dataclass, field

from truestep.events import BackwardEnded, DistancesRead, Event, LossComputed, RunEnded, Site, TapeRead, TermsRead
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule

_LEAST = 3
_LEAST_OF_A_CUT = 2
"""Reads that suffice if the source has the cut, such as ``.detach()``."""


@dataclass(slots=True)
class _Held:
    """The distances of weights from kept values in the losses of one line."""

    zero: set[int] = field(default_factory=set)
    other: set[int] = field(default_factory=set)
    reads: int = 0
    live: bool = False

    def add(self, event: DistancesRead) -> None:
        """Enter a read."""
        self.zero.update(event.zero)
        self.other.update(event.other)
        self.reads += not event.live
        self.live |= event.live


@dataclass(slots=True)
class _Line:
    """The sampled backward passes of one line."""

    first: TermsRead
    reads: int = 0
    with_gradient: bool = False
    """Whether all terms had a gradient in one of them."""


class TermWithoutGradient(Rule):
    """A term is added to the loss without a gradient: its weight has no effect on the training.

    What it does
    ------------
    Reads the sum that a backward pass starts from at sampled steps. Reports an operand without a gradient if the source
    shows that it is a term of the loss, and if it was computed from tensors that do have a gradient, to parameters that
    the same loss trains: it was detached, read as a number, computed under ``torch.no_grad()``, or computed from a
    comparison or a choice such as ``out > 0.5`` or ``argmax``, by the script or in the sum that a function of the same
    file returns. Functions and criteria of the file are followed to the choices in them.

    Also reports a derivative by ``torch.autograd.grad`` without ``create_graph=True`` which the script adds to tensors
    that the same parameters were used for, as in the residual of a differential equation, or of which it computes a
    term, and an energy with its forces: the output that was differentiated is part of the next backward pass.

    Also reports a penalty on the distance of weights from kept ones that is exactly zero in all these passes, while an
    optimizer moves the weights: the kept values are the weights themselves, ``p.data`` without a copy. The program must
    hold the memory of the weights under another name, and no copy of their values.

    Also reports a cross entropy that counts rows of scores which nothing has computed: in three sampled steps they hold
    only zeros, at equal distances, beside rows of other scores. They are the first positions of a tensor of zeros that
    a decoder fills from the second one on.

    Why it matters
    --------------
    The term is in the printed loss and changes nothing else. In the proof, a penalty on the size of the outputs is
    detached, and the outputs stay as large as without a penalty. In another one, weights that are kept without a copy
    hold nothing: after a second task, the accuracy on both is 0.48 instead of 0.76. Rows of zeros make the loss of a
    decoder larger by a constant, or compare each output with the target of its neighbour.

    Example
    -------
    ::

        def consistency(encoder, fake, real):
            with torch.no_grad():
                return (encoder(fake) - encoder(real)).square().mean()

        loss = reconstruction + 2.0 * consistency(encoder, fake, real)

    Fix
    ---
    Compute the term with gradients; detach only its target::

        def consistency(encoder, fake, real):
            with torch.no_grad():
                target = encoder(real)
            return (encoder(fake) - target).square().mean()

    Known false alarms
    ------------------
    A constant that is added on purpose, to print the loss with it, and a penalty at a copy in a numpy array, in a step
    that begins there, beside another name of the live weights. Not reported: a difference that is detached, as in
    straight-through estimators, constants, detached weights and targets, choices in functions of other files, choices
    beside functions and objects that may hold parameters, distances of weights that do not move, noise that is compared
    with a chance, derivatives by tensors that the weights were used for (perturbed embeddings), derivatives in sums
    that are only printed or weigh samples, derivatives that are detached, that are only factors, or that are added to
    inputs, and terms that have a gradient in some steps, also in turn.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
    """

    id = "term-without-gradient"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "loss"
    watches = (TermsRead, DistancesRead, BackwardEnded, LossComputed)
    needs = (TapeRead,)

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[Site | None, _Line] = {}
        self._blank: dict[Site | None, int] = {}
        """Line of a loss to the steps in which it counted rows of zeros; -1 after a step without them."""
        self._held: dict[Site | None, _Held] = {}

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, DistancesRead):
            self._held.setdefault(event.site, _Held()).add(event)
        if isinstance(event, LossComputed) and event.blank is not None:
            self._counts_blank(event, event.blank, run)
        if isinstance(event, TermsRead):
            line = self._lines.setdefault(event.site, _Line(event))
            line.reads += 1
            line.with_gradient |= event.place is None
            if line.with_gradient:
                self.withdraw(event.site)
            elif line.reads >= (_LEAST_OF_A_CUT if line.first.cut else _LEAST):
                self._found(line, run)

    def _counts_blank(self, loss: LossComputed, rows: int, run: Progress) -> None:
        before = self._blank.get(loss.site, 0)
        self._blank[loss.site] = count = before + 1 if rows and before >= 0 else -1
        if count < _LEAST:
            return
        draft = self.report(
            loss.site,
            f"the loss counts {rows} rows of scores that nothing has computed",
            run=run,
            label="they hold only zeros, beside rows of other scores",
            cost="these rows have no gradient; if outputs were moved by one position, each meets another target",
            help="leave out the first position of outputs and targets alike, `output[:, 1:]` and `target[:, 1:]`",
            unit="losses read",
            key=(loss.site, "rows"),
        )
        draft.count = draft.total = count

    def _found(self, line: _Line, run: Progress) -> None:
        first = line.first
        term = f"the term `{first.name}`" if first.name else "a term"
        how = {"": "has no gradient", "torch.no_grad()": "is computed under `torch.no_grad()`"}.get(
            first.cut, f"is cut by `{first.cut}`"
        )
        message = f"{term} of the loss has no gradient, and its weight has no effect on the training"
        remedy = "compute the term with gradients, and detach only its targets"
        if first.cut == "torch.autograd.grad":
            message = "a derivative in the loss has no gradient, and has no effect on the training"
            how, remedy = "is computed without a graph", "take the derivative with `create_graph=True`"
        draft = self.report(
            first.place,
            message,
            run=run,
            label=how,
            related=(Mark(first.site, "the backward pass from the sum"),),
            help=remedy,
            unit="backward passes read",
            key=first.site,
        )
        draft.count, draft.first_step = line.reads, 0

    def _judge_distances(self, run: Progress) -> None:
        """Report penalties that hold the weights at the weights themselves."""
        for site, held in self._held.items():
            trained = [one for one in sorted(held.zero) if run.held_by.get(one)]
            if not held.live or not trained or held.zero & held.other:
                continue
            names = run.parameter_names(tuple(trained))
            draft = self.report(
                site,
                f"a penalty of the loss on the distance of {names} from kept values is always zero",
                run=run,
                label="differentiates a loss with this penalty",
                help="keep copies of the weights: `p.detach().clone()`, not `p.data`",
                cost="the kept values change with the weights: the penalty holds nothing",
                unit="backward passes read",
                key=(site, "distances"),
            )
            draft.count, draft.first_step = held.reads, None

    def ended(self, event: RunEnded, run: Progress) -> None:
        self._judge_distances(run)
        for site, line in self._lines.items():
            if line.with_gradient:
                self.withdraw(site)
