"""Evidence from sizes: a softmax over the classes normalises as many numbers as the loss has classes."""

from __future__ import annotations

from collections.abc import Iterator

from truestep.events import (
    Event,
    LossComputed,
    OverlapRead,
    PartnersScored,
    PenaltyRead,
    ProbabilitiesRead,
    ResultCompared,
    SamplesCompared,
    Site,
    SoftmaxRead,
    UnitVectorsRead,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import attention, layers
from truestep.syntax import Program, Suspicion

_OF_CLASSES = ("nll_loss", "cross_entropy")
_LEAST_READS = 3
_LEAST_LOOKS = 2
_OVER = {
    "queries": "the queries",
    "heads": "another dimension, such as that of the heads",
    "samples": "the first dimension, such as that of the samples",
    "one": "one number",
}
_COST = {
    "queries": "the weights of a query do not sum to one, and depend on the other queries",
    "heads": "the weights of a query do not sum to one, and one head takes from the others",
    "one": "all weights are 1",
    "samples": "the weights of a query do not sum to one, and a sample takes from the others",
    "labels": "the share of a class for a sample depends on the other samples",
}


class SoftmaxWrongDim(Rule):
    """A softmax before the loss runs over the batch, over one class, or over another dimension than the classes.

    What it does
    ------------
    Checks the softmax or log_softmax that computed the input of a training loss. Before ``nll_loss`` and
    ``cross_entropy`` it must run over as many numbers as there are classes; before any loss, over more than one number.
    Also reports ``cross_entropy`` itself over one class, with targets that are not indices; and a softmax or
    ``normalize`` inside a model over the samples of a batch, if on a copy of the model it is the first operation after
    which a sample depends on the others, or the first one behind a view that scrambles the samples; and contrastive
    scores that are products of vectors with a norm of one over the samples of the batch, in each of their dimensions,
    at three sampled steps; and an overlap by hand (dice, IoU) of a softmax and one-hot targets of the same shape, at
    three sampled steps, if the softmax runs over the rows or columns of the image and the targets have their one along
    another dimension.

    Also reports a loss with targets that sum to one over the samples of a batch, each class for itself, while its input
    is made for the classes of each sample, or reversed: cross entropy, ``kl_div`` and mean errors, at two sampled
    steps. In an evaluation, repeats the statements after the call of a model on copies, and reports a softmax of its
    scores over the samples, if the model is trained by a cross entropy of so many classes, and the program takes the
    largest of each row, or one class of every row as a probability, by its name.

    Also reports, at two sampled steps, self-attention by hand with a softmax over the queries, the heads or the
    samples, while the product with the values sums over the keys; labels that pick a value of each row, by ``gather``
    or an index, from a softmax over the samples; and products of two tensors that sum over the features of a layer,
    while both were divided by a norm along another dimension, as ``normalize`` does by default in a sequence.

    Also reports, at two sampled steps, a gradient penalty that takes one norm of the whole batch, or one of each pixel
    or position, ``gradients.norm(2, dim=1)`` of images, instead of one of each sample.

    Why it matters
    --------------
    Over the batch, the prediction for a sample depends on the other samples: the loss falls, but samples classified one
    at a time all get class 0 (accuracy 0.05 instead of 0.91 in the proof). Over one class, the result is always 1, the
    loss is a constant, and no gradient reaches the model.

    Example
    -------
    ::

        log_p = F.log_softmax(model(x), dim=0)      # (N, C): over the N samples
        loss = F.nll_loss(log_p, y)

        p = torch.softmax(model(x), dim=1)          # (N, 1): always 1
        loss = F.binary_cross_entropy(p, y)

    Fix
    ---
    Pass the dimension of the classes, and use a sigmoid for a single output::

        loss = F.nll_loss(F.log_softmax(model(x), dim=1), y)
        loss = F.binary_cross_entropy_with_logits(model(x), y)

    Known false alarms
    ------------------
    None known. Not reported: the columns of a square matrix of similarities (contrastive losses in both directions), a
    softmax over a list of scores before ``kl_div`` (ranking), other softmaxes that are not the direct input of the
    loss, weights of attention that are divided by their sum, multiply other weights or belong to two sequences, a head
    with one class and its index as the target, lists if only some have one entry, one-hot targets that are weighted by
    class, overlaps of predictions that are reshaped before or after the softmax, or that are weights of attention as
    well, and a softmax over the samples that an evaluation reads in another way, as for the best sample of each class,
    or as weights of the samples.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """

    id = "softmax-wrong-dim"
    since = "0.1"
    severity = Severity.ERROR
    account = "loss"
    watches = (
        SoftmaxRead,
        LossComputed,
        OverlapRead,
        PartnersScored,
        PenaltyRead,
        ProbabilitiesRead,
        ResultCompared,
        SamplesCompared,
        UnitVectorsRead,
    )
    needs = (LossComputed,)
    asks = "no softmax runs over the samples"
    explains = ("loss-at-chance", "loss-never-changes", "parameters-without-effect")

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        yield from layers.softmax_wrong_dim(program)
        yield from attention.softmaxes_over_batches(program)

    def __init__(self) -> None:
        super().__init__()
        self._first: dict[Site | None, int] = {}
        self._wrong: dict[Site | None, int] = {}
        self._right: dict[Site | None, int] = {}
        self._vectors: dict[Site | None, int] = {}
        """Line of contrastive scores to the sampled steps with vectors normalised over the samples; -1 after others."""
        self._crossed: dict[Site | None, int] = {}
        """Line of a backward pass to the overlaps of a softmax over another dimension than the classes."""
        self._uses: dict[tuple[str, Site | None], int] = {}
        """Use and line of a backward pass to the softmaxes of a wrong dimension that were read; -1 after others."""
        self._over: dict[Site | None, str] = {}
        """Line of a reported loss to the dimension of its softmax: one over the batch explains that of the samples."""
        self._classes: set[int] = set()
        """Numbers of classes of the losses of the training."""

    def suspected(self) -> bool:
        return super().suspected() or any(2 * self._right.get(site, 0) < times for site, times in self._wrong.items())

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, SamplesCompared) and event.cause == "softmax" and "batch" not in self._over.values():
            self._inside(event, run)
        if isinstance(event, PartnersScored):
            self._scored(event, run)
        if isinstance(event, OverlapRead) and event.crossed:
            self._overlaps(event, run)
        if isinstance(event, ProbabilitiesRead) and event.over and self.seen_before((event.site, event.kind), run):
            self._unlike(event, run)
        if isinstance(event, SoftmaxRead):
            self._used(event, run)
        if isinstance(event, UnitVectorsRead):
            self._multiplied(event, run)
        if isinstance(event, PenaltyRead):
            self._penalised(event, run)
        if isinstance(event, ResultCompared) and event.how == "shares":
            self._of_evaluation(event, run)
        if not isinstance(event, LossComputed) or not event.grad:
            return
        site, over = event.site, _over(event)
        if not over:
            if event.kind in _OF_CLASSES and (event.input_rank, event.target_rank) == (2, 1):
                self._classes.add(event.classes)
            self._right[site] = self._right.get(site, 0) + 1
            if 2 * self._right[site] >= self._wrong.get(site, 0):
                self.withdraw(site)
            return
        first = self._first.setdefault(site, run.step)
        self._wrong[site] = times = self._wrong.get(site, 0) + 1
        if first == run.step or 2 * self._right.get(site, 0) >= times:
            return
        self._over[site] = over
        draft = self.report(
            site,
            _message(event, over),
            run=run,
            label=_label(event, over),
            cost="the loss is a constant, and no gradient reaches the model" if over == "one" else "",
            help=_help(over),
            confidence=Confidence.MEDIUM if over != "one" and event.kind == "cross_entropy" else Confidence.HIGH,
            unit="losses",
        )
        if draft.count == 1:
            draft.count, draft.first_step = times, first

    def _scored(self, event: PartnersScored, run: Progress) -> None:
        before = self._vectors.get(event.site, 0)
        self._vectors[event.site] = count = before + 1 if event.columns and before >= 0 else -1
        key = "vectors", event.site
        if count < 0:
            self.withdraw(key)
        if count < _LEAST_READS:
            return
        draft = self.report(
            event.site,
            f"the vectors of the contrastive scores are normalised over the {event.rows} samples of a batch",
            run=run,
            label="each column of the vectors has a norm of one, and no row",
            cost="the score of two samples depends on the other samples, and shrinks with their number",
            help="normalise each vector for itself, `F.normalize(features, dim=-1)`",
            confidence=Confidence.MEDIUM,
            unit="losses read",
            key=key,
        )
        draft.count = draft.total = count

    def _overlaps(self, event: OverlapRead, run: Progress) -> None:
        self._crossed[event.site] = count = self._crossed.get(event.site, 0) + 1
        if count < _LEAST_READS:
            return
        draft = self.report(
            event.site,
            "the softmax before an overlap in this loss, such as dice, runs over another dimension than the classes",
            run=run,
            label="its one-hot targets have their one along another dimension",
            help="pass the dimension of the classes to the softmax, `dim=1` for predictions of shape (N, C, H, W)",
            confidence=Confidence.MEDIUM,
            unit="losses read",
            key=("overlap", event.site),
        )
        draft.count = count

    def _unlike(self, event: ProbabilitiesRead, run: Progress) -> None:
        over, other = ("samples", "classes") if event.over == "samples" else ("classes", "samples")
        self.report(
            event.site,
            f"the targets of {event.kind} sum to one over the {over}, and its input is made for the {other}",
            run=run,
            label="compares shares of different wholes",
            cost="the loss is not least where the two are equal",
            help=_help("batch"),
            confidence=Confidence.MEDIUM,
            unit="sampled losses",
            key=("unlike", event.site),
        )

    def _counted(self, key: tuple[str, Site | None], wrong: bool) -> int:
        """Return the number of reads with a wrong dimension; -1 after a read with another one."""
        before = self._uses.get(key, 0)
        self._uses[key] = count = before + 1 if wrong and before >= 0 else -1
        if count < 0:
            self.withdraw(key)
        return count

    def _used(self, event: SoftmaxRead, run: Progress) -> None:
        key = event.use, event.site
        count = self._counted(key, event.over not in ("keys", "classes"))
        if count < _LEAST_LOOKS:
            return
        calls = list(attention.softmaxes_over(event.files, event.dim))
        site = calls[0] if len(calls) == 1 else None
        if site in self._drafts:
            return  # a check on a copy has reported the softmax
        labels = event.use == "labels"
        draft = self.report(
            site or event.site,
            f"the softmax from which labels pick runs over the {event.shape[0]} samples of a batch"
            if labels
            else f"the softmax of attention runs over {_OVER[event.over]}, and the values are summed over the keys",
            run=run,
            label=f"of shape {event.shape}, over dimension {event.dim}",
            related=(Mark(event.site, "differentiates the result"),) if site and event.site else (),
            cost=_COST["labels" if labels else event.over],
            help=_help("batch")
            if labels
            else "let both run over the keys: `(q @ k.transpose(-1, -2)).softmax(dim=-1) @ v`",
            confidence=Confidence.MEDIUM,
            unit="losses read",
            key=key,
        )
        draft.count = draft.total = count

    def _multiplied(self, event: UnitVectorsRead, run: Progress) -> None:
        key = "units", event.site
        count = self._counted(key, event.apart)
        if count < _LEAST_LOOKS:
            return
        calls = list(attention.norms_over(event.files, event.dim, len(event.shape)))
        site = calls[0] if calls else None
        draft = self.report(
            site or event.site,
            f"vectors are normalised over dimension {event.dim}, and multiplied over their features",
            run=run,
            label=f"of shape {event.shape}: no vector of features has a norm of one",
            related=(Mark(event.site, "differentiates the result"),) if site and event.site else (),
            cost="the products are not cosines: they grow with the norms, and depend on the other positions",
            help="normalise the features, `F.normalize(x, dim=-1)`: the default is dimension 1",
            confidence=Confidence.MEDIUM,
            unit="losses read",
            key=key,
        )
        draft.count = draft.total = count

    def _penalised(self, event: PenaltyRead, run: Progress) -> None:
        key = "penalty", event.site
        count = self._counted(key, bool(event.over))
        if count < _LEAST_LOOKS:
            return
        whole = event.over == "batch"
        of = "the whole batch" if whole else "each position"
        draft = self.report(
            event.site,
            f"the gradient penalty takes a norm of {of}, not of each sample",
            run=run,
            label=f"of gradients of shape {event.shape}",
            cost="the gradients of all samples together are kept near the bound"
            if whole
            else "the gradient of a sample can be as many times larger as the root of its positions",
            help="take the norm of each sample, `gradients.flatten(1).norm(2, dim=1)`",
            confidence=Confidence.MEDIUM,
            unit="losses read",
            key=key,
        )
        draft.count = draft.total = count

    def _of_evaluation(self, event: ResultCompared, run: Progress) -> None:
        if event.predicted[-1] not in self._classes:
            return
        samples, classes = event.predicted
        self.report(
            event.site,
            f"a softmax in an evaluation runs over the {samples} samples of a batch, not over the {classes} classes",
            run=run,
            label="takes scores of each sample, which do not sum to one",
            related=(Mark(event.call, "the call of the model"),) if event.call and event.call != event.site else (),
            cost="the score of a sample depends on the other samples of its batch",
            help=_help("batch"),
            confidence=Confidence.MEDIUM,
            unit="evaluations",
            key=("evaluation", event.site),
        )

    def _inside(self, event: SamplesCompared, run: Progress) -> None:
        if any(draft.primary.site == event.site for draft in self._drafts.values()):
            return
        name = run.model_name(event.model)
        self.report(
            event.site,
            f"a {event.kind} inside `{name}` runs over the {event.samples} samples of a batch",
            run=run,
            label=f"of shape {event.before}, over dimension 0",
            cost=f"on a copy of `{name}`, a sample's result changed with the other samples",
            help="pass the dimension of the features, `dim=-1`",
            confidence=Confidence.MEDIUM,
            unit="checks",
        )


def _over(loss: LossComputed) -> str:
    """Return the dimension that a softmax before or inside a loss wrongly ran over; empty if correct or unknown."""
    over = loss.softmax_over
    if loss.kind in _OF_CLASSES and loss.classes == 1:
        values = loss.kind == "cross_entropy" and loss.input_rank == loss.target_rank == 2
        return "one" if values else ""
    if over == "one":
        return over
    if loss.kind == "cross_entropy":
        return over if over == "batch" and loss.input_rank == 2 else ""
    return over if over in ("batch", "other") else ""


def _message(loss: LossComputed, over: str) -> str:
    if over != "one":
        where = "the batch" if over == "batch" else "another dimension than the classes"
        return f"the softmax before {loss.kind} runs over {where}"
    if loss.classes == 1 and loss.kind == "cross_entropy":
        return "cross entropy takes the softmax of one class, which is always 1"
    return f"the softmax before {loss.kind} runs over one number, which makes it 1"


def _label(loss: LossComputed, over: str) -> str:
    if over == "batch":
        return f"each of its {loss.classes} classes sums to one over the samples"
    if over == "other":
        return f"it ran over another number of values than the {loss.classes} classes"
    return "its input has one class" if loss.kind == "cross_entropy" else "its input is always 1"


def _help(over: str) -> str:
    if over == "one":
        return "use `binary_cross_entropy_with_logits` for one output, or give the model one output per class"
    return "pass the dimension of the classes to the softmax, `dim=1` for predictions of shape (N, C)"
