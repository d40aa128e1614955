from __future__ import annotations

import math

from truestep.events import CountedRead, Event, PaddingRead, ReadingsRead, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import Condition
from truestep.rules._rule import Progress, Rule

_LEAST_SHARE = 20
"""Least percentage of padding among the targets; below, the harm is small."""
_LEAST_AFTER_END = 5
"""Least percentage after a separate end token: then no padding is a target that the model has to predict."""
_LEAST_LOOKS = 3
_READ = Condition(PaddingRead.absent, lambda run: not run.met.isdisjoint({CountedRead, PaddingRead, ReadingsRead}))


_MASKS = {
    "alone": (
        "the loss counts padding, and no target",
        "all targets with a gradient are {value:g}",
        "no real target changed the weights",
        "invert the mask: it must be 1 for real targets, and 0 for padding",
    ),
    "moved": (
        "the mask of the loss is off by one position from its targets",
        "counts targets of {value:g}, which stand for missing values, and leaves out as many others",
        "the model is trained on values that do not exist",
        "move the mask as the targets: `mask[:, 1:]` for `targets[:, 1:]`",
    ),
    "late": (
        "the mask of the loss is one position late",
        "leaves out the first target of each row, and counts one position of padding ({value:g})",
        "the model is trained on a target of padding for each row",
        "move the mask as the targets: `mask[:, :-1]` for `targets[:, :-1]`",
    ),
    "extra": (
        "the loss counts one position of padding in each row",
        "the first target of {value:g} after the end of each row has a gradient",
        "the model is trained on a target of padding for each row",
        "make the mask from the targets, or compare with `<`: `torch.arange(length) < lengths[:, None]`",
    ),
}
"""Message, label, harm and help by the fault of a mask."""


class PaddingInLoss(Rule):
    """Targets of a loss are padding, or stand for missing readings, and count in the loss.

    What it does
    ------------
    Reads, at sampled steps, the class targets of ``cross_entropy`` and ``nll_loss`` with an input from an
    ``nn.Embedding`` that has a ``padding_idx`` and as many entries as there are classes. Reports losses in which this
    index makes up at least a fifth of the targets at three sampled steps in a row, appears only at the ends of rows,
    and is neither ignored nor weighted. Where the targets are labels of the tokens, from another vocabulary, reports
    one label that all padding of the tokens has, in the same way. A twentieth is enough if a separate end token comes
    before the padding of each row, which the model therefore never has to predict.
    With ``reduction="none"``, the targets that count are those with a gradient: a mask by hand is read as it
    works, also one that is inverted and leaves padding alone.

    Of a loss that the program masks, sums and divides itself, finds the positions that count on the tape. Reports a
    mask that is inverted: at three sampled steps, all targets that count are one value, as that of padding at the ends
    of rows, of ignored pixels or of missing values, and the targets that are left out have others. Reports a mask of
    missing values that lies one position before or after the targets, and a mask of tags that reaches one position
    beyond the lengths of the rows, into padding with an ordinary label.

    Of losses on numbers, reports a mask that keeps every target at three sampled steps in a program that looks for NaN,
    if the targets hold a value that is far from all others and comes again and again in each of three columns or more,
    as zeros of sensors that were silent, and as many errors are far from the others.

    Why it matters
    --------------
    Padding is frequent and easy to predict, so the average loss falls at once, and the gradient of real tokens is
    divided by the number of padding targets too. The average that is printed is lower than that of the tokens. In the
    proof, with three quarters of padding and SGD, a model predicts 21 % of the tokens right instead of 71 %. In rows of
    12 (41 % padding) it was 45 % instead of 70 %, in rows of 9 (19 %) 60 % instead of 70 %, with a printed loss of
    1.5 where that of the tokens is 1.7. With longer training the difference is smaller. A tagger that gets 0 for the
    labels of padding, a third of all, has 82 % of the tags right instead of 86 %. With an inverted mask a model learns
    nothing of its targets, and the loss falls to zero.

    Example
    -------
    ::

        self.embedding = nn.Embedding(vocabulary, 64, padding_idx=0)
        loss = F.cross_entropy(logits.transpose(1, 2), targets)                     # 0 counts as a class

        mask = ~torch.isnan(speed)                                                  # missing readings are 0
        loss = ((prediction - speed).abs() * mask).sum() / mask.sum()

    Fix
    ---
    Exclude padding from the average. If padding also marks the end of a row, use a separate end token::

        loss = F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=0)

    Ask for the value that stands for a missing reading::

        mask = speed != 0

    Known false alarms
    ------------------
    A model that should produce rows of a fixed length including padding; readings of devices that are off at random and
    far from zero otherwise, beside a mask for NaN that these data do not need. Not reported: a first position of
    padding that can stand for the end of a row, parts of a training that count padding in another term, or by another
    backward pass, masks of missing values that are the least or the largest number, losses with class weights,
    an end token that appears once per row, padding with scores that are the same for all classes (a mask has replaced
    them), and vocabularies in which index 0 is a token (no ``padding_idx``). Losses computed one position at a time,
    and models inside ``torch.compile``, are not checked.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html
    """

    id = "padding-in-loss"
    since = "0.1"
    severity = Severity.WARNING
    account = "loss"
    confidence = Confidence.MEDIUM
    watches = (CountedRead, PaddingRead, ReadingsRead)
    needs = (_READ,)

    def __init__(self) -> None:
        super().__init__()
        self._looks: dict[tuple[Site | None, str], list[tuple[int, int, bool]]] = {}
        """Loss to the steps with too much padding in a row: number, percentage, and True for padding alone."""

        self._readings: dict[Site | None, list[ReadingsRead]] = {}
        """Line of a backward pass to its reads with missing readings among the targets."""
        self._masks: dict[Site | None, dict[int, str]] = {}
        """Line of a backward pass to the faults of the masks of its losses, by step."""
        self._some = False
        """True if a smaller part of the targets was padding."""

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("less than a fifth of the targets are padding" if self._some else "")

    def suspected(self) -> bool:
        return super().suspected() or bool(self._looks)

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, ReadingsRead):
            self._read(event, run)
        elif isinstance(event, CountedRead):
            self._counts(event, run)
        if not isinstance(event, PaddingRead):
            return
        key = (event.site, event.kind)
        if event.share < (_LEAST_AFTER_END if event.ended else _LEAST_SHARE):
            self._some = self._some or event.share > 0
            self._looks.pop(key, None)
            self.withdraw(key)
            return
        looks = self._looks.setdefault(key, [])
        looks.append((run.step, event.share, event.alone))
        if len(looks) < _LEAST_LOOKS:
            return
        known, steps = key in self._drafts, f"{len(looks)} sampled steps"
        of_tokens = f"index {event.index}, the `padding_idx` of the embedding,"
        index = f"label {event.index}, that of all padding," if event.labels else of_tokens
        if all(alone for _, _, alone in looks):
            message, severity = "the loss counts padding alone", Severity.ERROR
            label, cost = f"only targets of {index} have a gradient", f"no real target changed the weights at {steps}"
            help = "invert the mask: it must be 1 for real targets, and 0 for padding"
        else:
            message, severity = "padding counts in the loss as a target", self.severity
            label = f"{index} counts as an ordinary target"
            cost = f"at least {min(share for _, share, _ in looks)} % of the targets were padding at {steps}"
            help = f"pass `ignore_index={event.index}` to the loss"
            help += "" if event.ended else ", and end each row with a separate end token"
            if event.labels:
                help = "pad the labels with -100, which the loss ignores by default"
        draft = self.report(
            event.site,
            message,
            run=run,
            label=label,
            help=help,
            unit="sampled losses",
            key=key,
            severity=severity,
        )
        draft.cost = cost
        if not known:
            draft.count, draft.first_step = len(looks), looks[0][0]

    def _read(self, event: ReadingsRead, run: Progress) -> None:
        """Report a mask for NaN that keeps the targets of missing readings."""
        reads = self._readings.setdefault(event.site, [])
        reads.append(event)
        if len(reads) < _LEAST_LOOKS:
            return
        value = "one value of each column" if math.isnan(event.value) else f"{event.value:g}"
        draft = self.report(
            event.made or event.site,
            f"{event.share:.0%} of the targets are {value}, far from all others, and the mask keeps them",
            run=run,
            label="no target is NaN",
            related=(Mark(event.site, "the loss"),) if event.made and event.site else (),
            cost=f"the model is trained on readings that do not exist, in `{event.table}`",
            help="compare with the value that stands for a missing reading, or store NaN for it",
            unit="sampled losses",
            key=("readings", event.site),
        )
        draft.count, draft.first_step = len(reads), None

    def _counts(self, event: CountedRead, run: Progress) -> None:
        """Report a mask by hand that leaves padding alone, or is off by one position."""
        if event.kind not in _MASKS:
            self._masks.pop(event.site, None)
            self.withdraw(("mask", event.site))
            return
        kinds = self._masks.setdefault(event.site, {})
        kinds.setdefault(run.step, event.kind)
        if (
            len(kinds) < _LEAST_LOOKS
            or len(set(kinds.values())) > 1
            or any(key[0] == event.made for key in self._looks)
        ):
            return
        message, label, harm, help = _MASKS[event.kind]
        draft = self.report(
            event.made or event.site,
            message,
            run=run,
            label=label.format(value=event.value),
            related=(Mark(event.site, "the backward pass"),) if event.made and event.site else (),
            severity=Severity.ERROR if event.kind == "alone" else self.severity,
            cost=f"{harm} at {len(kinds)} sampled steps",
            help=help,
            unit="sampled losses",
            key=("mask", event.site),
        )
        draft.count, draft.first_step = len(kinds), None
