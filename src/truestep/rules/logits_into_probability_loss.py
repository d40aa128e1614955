"""Evidence: the operation behind the loss input, and its first values; for NLL also the expression minimised."""

from __future__ import annotations

from collections.abc import Iterator

from truestep.events import BackwardEnded, Event, LossComputed, OptimizerStepped, OverlapRead, Site, TranscriptsRead
from truestep.findings import Confidence, Severity
from truestep.rules._conditions import Condition
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import losses
from truestep.syntax import Program, Suspicion

_NAMES = {"nll_loss": "NLL", "kl_div": "KL divergence"}
_PROBABILITIES = ("SoftmaxBackward0", "SigmoidBackward0")
_LINEAR = ("AddmmBackward0", "MmBackward0", "BmmBackward0", "BaddbmmBackward0", "ConvolutionBackward0")
_LOSSES = Condition(
    "no NLL loss, KL divergence, CTC loss or overlap of scores with gradients",
    lambda run: (
        TranscriptsRead in run.met or OverlapRead in run.met or any(kind in _NAMES for kind, *_ in run.losses.tally)
    ),
)
_LEAST_READS = 2
_LEAST_OVERLAPS = 3
_LEAST_BLANKS = 2
"""Least percentage of blanks among the targets of a CTC loss."""
_SCALINGS = ("DivBackward0", "MulBackward0")
"""Last operations of a loss that only scale it, as for gradient accumulation."""


class LogitsIntoProbabilityLoss(Rule):
    """A loss on log-probabilities gets logits or probabilities.

    What it does
    ------------
    Checks the input of ``nll_loss`` and ``kl_div`` in training. Reports inputs from a softmax or a sigmoid, inputs with
    non-negative rows that sum to one, and inputs from a linear or convolutional layer with values above zero, which
    log-probabilities cannot have.

    Checks the input of ``ctc_loss`` at sampled steps: reports rows with exponentials that do not sum to one, as of
    logits, probabilities, and a ``log_softmax`` over another dimension than the classes. Reports targets of this loss
    that include its blank, since a blank cannot be predicted as a symbol.

    Reads overlaps by hand (dice, IoU, Tversky) on the tape of the loss at sampled steps: quotients of two sums that are
    linear in the prediction, with products with targets from 0 to 1 above, and the sum of the targets added below.
    Reports them, at the backward
    pass, if the prediction is the output of a linear or convolutional layer in three reads, and the same loss takes
    this layer for logits, or the latest quotients are below zero or above one.

    Why it matters
    --------------
    The first two losses multiply their input by the target and take no logarithm. On logits they have no lower bound:
    the loss falls without end while the model learns to make numbers large (accuracy 0.15 instead of 0.91 in the
    proof). On probabilities the penalty of a confident wrong answer is bounded: with SGD the same model reached 0.68
    instead of 0.90, with Adam nearly the same accuracy. ``kl_div`` on probabilities gave a divergence of 1.1 instead of
    0.19.

    Example
    -------
    ::

        loss = F.nll_loss(model(x), y)                              # logits
        loss = F.nll_loss(torch.softmax(model(x), 1), y)            # probabilities
        loss = F.kl_div(torch.softmax(student, 1), teacher)         # probabilities

    Fix
    ---
    Pass log-probabilities; for logits and class indices use ``cross_entropy``::

        loss = F.cross_entropy(model(x), y)
        loss = F.kl_div(torch.log_softmax(student, 1), teacher, reduction="batchmean")

    Known false alarms
    ------------------
    ``nll_loss`` on probabilities, minimised alone, is a bounded loss (1 - p of the right class up to a constant) that
    some use against wrong labels. Write it as ``1 - p.gather(1, y)`` or allow the finding. Not reported: ``nll_loss``
    as a part of another expression (picking values, cross entropy by hand with ``logsumexp``) or with
    ``reduction="none"``, ``kl_div`` of positive masses with an input from a logarithm, shares of a total, and overlaps
    with squares in the lower sum or of an output that is limited to some range. ``BCELoss`` itself raises an error
    outside of [0, 1].

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.NLLLoss.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.KLDivLoss.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CTCLoss.html
    """

    id = "logits-into-probability-loss"
    since = "0.1"
    severity = Severity.ERROR
    account = "loss"
    watches = (LossComputed, BackwardEnded, OptimizerStepped, OverlapRead, TranscriptsRead)
    needs = (_LOSSES,)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return losses.logits_into_probability_loss(program)

    def __init__(self) -> None:
        super().__init__()
        self._unbounded: set[tuple[Site | None, str]] = set()
        """Losses with an operation that gave them an input with values above zero."""
        self._pending: list[tuple[LossComputed, str]] = []
        """NLL losses since the last backward pass, each with the result of `_wrong`."""
        self._transcripts: dict[Site | None, list[TranscriptsRead]] = {}
        self._overlaps: dict[Site | None, list[OverlapRead]] = {}

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case TranscriptsRead():
                reads = self._transcripts.setdefault(event.site, [])
                reads.append(event)
                self._read(reads, run)
            case OverlapRead(scores=True):
                overlaps = self._overlaps.setdefault(event.site, [])
                overlaps.append(event)
                self._judge(overlaps, run)
            case LossComputed(kind="kl_div", grad=True):
                wrong = self._wrong(event)
                if wrong:
                    self._found(event, wrong, run)
            case LossComputed(kind="nll_loss", grad=True):
                self._pending.append((event, self._wrong(event)))
            case BackwardEnded(root=root):
                direct = root.startswith("NllLoss") or (root in _SCALINGS and len(self._pending) == 1)
                if direct and all(wrong for _, wrong in self._pending):
                    for loss, wrong in self._pending:
                        self._found(loss, wrong, run)
                self._pending.clear()
            case OptimizerStepped():
                self._pending.clear()

    def _read(self, reads: list[TranscriptsRead], run: Progress) -> None:
        """Judge the inputs and the targets of a CTC loss."""
        last, count = reads[-1], len(reads)
        if count >= _LEAST_READS and all(one.values == last.values != "log-probabilities" for one in reads):
            wrong = "probabilities" if last.values == "probabilities" else "numbers other than log-probabilities"
            self.report(
                last.site,
                f"the CTC loss got {wrong}",
                run=run,
                label="the exponentials of a row of its input do not sum to one",
                help="apply `log_softmax` over the classes, the last dimension of the input",
                confidence=Confidence.MEDIUM,
                unit="losses read",
                key=(last.site, "input"),
            ).count = count
        if count >= _LEAST_READS and all(one.blanks >= _LEAST_BLANKS for one in reads):
            self.report(
                last.site,
                f"the targets of the CTC loss include its blank, {last.blank}",
                run=run,
                label=f"{last.blanks} % of the targets are the blank",
                cost="the loss takes a blank for no symbol: these targets cannot be learned, nor decoded",
                help="number the symbols beside the blank, such as from 1 on with `blank=0`",
                confidence=Confidence.MEDIUM,
                unit="losses read",
                key=(last.site, "blank"),
            ).count = count

    def _judge(self, overlaps: list[OverlapRead], run: Progress) -> None:
        """Judge the overlaps of scores in the losses of one line."""
        last, count = overlaps[-1], len(overlaps)
        shared = all(one.shared for one in overlaps)
        if not shared and not last.outside:  # an output that learns to be a probability comes into its range
            self.withdraw((last.site, "overlap"))
        late = overlaps[-_LEAST_OVERLAPS:]
        if count < _LEAST_OVERLAPS or not (shared or all(one.outside for one in late)):
            return
        draft = self.report(
            last.site,
            "an overlap in this loss, such as dice or IoU, is computed from the scores of a layer",
            run=run,
            label="the loss takes the same scores for logits" if shared else "it was below zero or above one",
            cost="an overlap of probabilities is between zero and one; of scores it has no bound",
            help="apply a sigmoid or a softmax over the classes before the sums",
            confidence=Confidence.MEDIUM,
            unit="losses read",
            key=(last.site, "overlap"),
        )
        draft.count = count if shared else sum(one.outside for one in overlaps)
        draft.total = count

    def _wrong(self, loss: LossComputed) -> str:
        """Return "probabilities" or "logits" if the loss got them instead of log-probabilities; else empty."""
        if loss.kind == "nll_loss" and (loss.classes < 2 or loss.reduction == "none"):
            return ""
        if loss.made_by in _PROBABILITIES or loss.values == "probabilities":
            return "probabilities"
        maker = (loss.site, loss.made_by)
        if loss.made_by in _LINEAR and loss.values == "unbounded":
            self._unbounded.add(maker)
        return "logits" if maker in self._unbounded else ""

    def _found(self, loss: LossComputed, wrong: str, run: Progress) -> None:
        if not self.seen_before(loss.site, run):
            return
        name, certain = _NAMES[loss.kind], loss.made_by in _PROBABILITIES
        self.report(
            loss.site,
            f"{name} got {wrong} where it expects log-probabilities",
            run=run,
            label=_label(loss, wrong),
            cost="on logits this loss has no lower bound: it falls as long as the numbers grow"
            if wrong == "logits"
            else "",
            help=_help(loss, wrong),
            confidence=Confidence.HIGH if certain or wrong == "logits" else Confidence.MEDIUM,
            unit="losses",
        )


def _label(loss: LossComputed, wrong: str) -> str:
    if wrong == "logits":
        return "its input is the output of a layer, with values above zero"
    makers = {
        "SoftmaxBackward0": "its input comes from a softmax",
        "SigmoidBackward0": "its input comes from a sigmoid",
    }
    return makers.get(loss.made_by, "the rows of its input sum to one")


def _help(loss: LossComputed, wrong: str) -> str:
    if loss.kind == "nll_loss":
        return "use `cross_entropy` on the logits, or `log_softmax` before this loss"
    if wrong == "logits":
        return "apply `log_softmax` to the input"
    return "pass the logarithm as input: `log_softmax` of the logits; the second argument takes probabilities"
