from __future__ import annotations

from truestep.events import CountedRead, Event, Site, TargetsCompared
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule

_TWICE = 2
_LEAST = 3
_HELP = {
    1: "mask later positions, as with `is_causal=True`",
    0: "shift the targets by one position",
    -1: "take the token after each position as its target, not the token before it",
}


class TargetInInput(Rule):
    """A model reads the target that it is to predict: a token of a sequence, or a feature.

    What it does
    ------------
    Compares, at sampled steps, the class targets of a loss with the tokens that the model was called on. If each target
    is the token at its position, the next or the previous one, calls a copy of the model with other tokens there.
    Reports a model if its output for a target depends on that target, by operations that keep the positions apart: a
    missing mask, a mask that is transposed, targets that are not shifted, or in the wrong direction.

    A masked language model is compared at the positions that its loss counts. Of a loss that the program masks and
    divides itself, reports a mask that is inverted: in three sampled steps, the model reads each target that counts,
    and an array of the program has other tokens at the masked positions, of which none counts.

    Also reports targets in another order than the outputs: the same tokens, sequence by sequence where the outputs are
    position by position.

    Also reports targets that were shifted twice, by the data set and by the loss, in three sampled steps: each of them
    is the second token after its position, and none is the next one.

    Also reports windows of tokens that end with the word that is to be predicted, in every sampled batch: the classes
    are those of the tokens, and the tokens are not equally frequent, as those drawn at random are. Of data with fewer
    than 96 rows, all rows are compared, and the script must not draw whole numbers.

    Also reports a target of one number that is a feature of the input in every sampled batch, equal, scaled or shifted,
    if the model reads that feature, and the other features predict the target in part: a label left in the features, or
    a window that ends with its target. Of targets for three steps or more, the first one is compared with the last step
    of the window: the targets begin one step too early. Several targets are at most half as many as the features.

    Why it matters
    --------------
    The model learns to copy. Its loss falls far below that of any honest model, in training and in evaluation, but it
    cannot generate, because the token to copy is missing there. In the proof a language model without a mask has a
    loss of 0.002 instead of 0.09, and generates 36 % of the tokens right instead of 100 %.

    Example
    -------
    ::

        y = F.scaled_dot_product_attention(q, k, v)         # each position reads all others
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

    Fix
    ---
    Mask later positions, and shift the targets by one::

        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)

    Known false alarms
    ------------------
    A sequence autoencoder with a decoder that reads its encoder position by position, a loss for the reconstruction of
    a single feature, and a test that asks for the last token of a few lists. Not reported: masked language models, in
    which targets are not in the input; autoencoders with a summary of the sequence, or of several features; several
    targets of which most are features, or that are more than half as many as the features, such as the next state;
    sequences that several arguments hold, of which one is read up to the position; tests of a memory with random
    features, or that repeat tokens drawn at random one step later, after a blank; and series without noise, which any
    feature predicts.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.Transformer.html
    """

    id = "target-in-input"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "samples"
    watches = (CountedRead, TargetsCompared)
    needs = (TargetsCompared,)
    asks = "no target is read"

    def __init__(self) -> None:
        super().__init__()
        self._honest: set[int] = set()
        """Models with a check in which outputs did not depend on their targets."""
        self._twice: dict[int, int] = {}
        """Model to the number of checks with targets that are the second token after their positions."""
        self._kept: dict[Site | None, set[int]] = {}
        """Line of a backward pass to the steps with a loss on all tokens but the masked ones."""
        self._losses: dict[int, Site | None] = {}
        """Model that reads its targets to the line of the loss."""
        self._inverted: set[Site | None] = set()
        """Lines of losses with such a mask."""

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, CountedRead):
            self._counts(event, run)
        if not isinstance(event, TargetsCompared):
            return
        if event.shift == _TWICE and event.column is None:
            self._shifted_twice(event, run)
            return
        if not (event.reads or event.crossed):
            self._honest.add(event.model)
            self.withdraw(event.model)
        if event.model in self._honest or event.loss in self._inverted:
            return
        self._losses[event.model] = event.loss
        name = run.model_name(event.model)
        if event.column is not None:
            self.report(
                event.made or event.loss,
                f"`{name}` reads its target, in feature {event.column} of its input",
                run=run,
                label="makes the target"
                if event.made
                else "the target is a feature, scaled or shifted, in every batch",
                related=_also(event.loss if event.made else None, "the loss") + _also(event.site, "the call"),
                cost="the loss falls to zero by a copy of one feature, which is not known when the model is used",
                help="leave the target out of the features, or take a later value as target",
                unit="checks",
                key=event.model,
            )
            return
        apart = event.made is not None and (event.loss is None or event.made.line != event.loss.line)
        batch = _also(event.made, "makes the batch") if apart and event.shift <= 0 else ()
        if event.crossed:
            self.report(
                event.loss,
                f"the targets of `{name}` are in another order than its outputs",
                run=run,
                label="the same tokens as in the input, but sequence by sequence, and the outputs position by position",
                related=_also(event.site, "the call") + batch,
                cost="nearly every output is compared with a token of another sequence",
                help="flatten outputs and targets in the same order of dimensions",
                unit="checks",
                key=event.model,
            )
            return
        also = _also(event.loss, "targets") if event.cause else _also(event.site, "the call")
        self.report(
            event.cause or event.loss,
            f"`{name}` reads the tokens that it is to predict",
            run=run,
            label="brings later tokens to earlier positions" if event.cause else "each target is a token of the input",
            related=also + batch,
            cost="on a copy, another token changed the output for which it is the target: the model learns to copy it",
            help=_HELP[event.shift],
            unit="checks",
            key=event.model,
        )

    def _counts(self, event: CountedRead, run: Progress) -> None:
        """Report a mask that leaves out the masked tokens, in three sampled steps and all others that were read."""
        key = "mask", event.site
        if event.kind != "kept":
            if self._kept.pop(event.site, None):
                self.withdraw(key)
            return
        steps = self._kept.setdefault(event.site, set())
        steps.add(run.step)
        if len(steps) < _LEAST:
            return
        draft = self.report(
            event.made or event.site,
            "the loss counts the tokens that the model reads, and leaves out the masked ones",
            run=run,
            label=f"no position with the mark {event.value:g} has a gradient",
            related=_also(event.site if event.made else None, "the backward pass"),
            cost=f"all targets were tokens of the input at {len(steps)} sampled steps: the model learns to copy them",
            help="invert the mask: count the masked positions alone, as with labels of -100 at all others",
            unit="sampled losses",
            key=key,
        )
        draft.count, draft.first_step = len(steps), None
        self._inverted |= {event.made} - {None}
        for model, loss in self._losses.items():
            if loss in self._inverted:
                self.withdraw(model)

    def _shifted_twice(self, event: TargetsCompared, run: Progress) -> None:
        self._twice[event.model] = times = self._twice.get(event.model, 0) + 1
        if times < _LEAST or event.model in self._honest:
            return
        name = run.model_name(event.model)
        draft = self.report(
            event.loss,
            f"`{name}` is trained on the token after the next one: its targets are shifted twice",
            run=run,
            label="each target is the second token after its position",
            related=_also(event.site, "the call"),
            cost="the model does not learn the next token, and its loss is that of another task",
            help="shift the targets once, in the data set or in the loss",
            unit="checks",
            key=event.model,
        )
        draft.count = draft.total = times


def _also(site: Site | None, label: str) -> tuple[Mark, ...]:
    return () if site is None else (Mark(site, label),)
