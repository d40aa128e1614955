"""Evidence from a copy of the model: its results do not change with an argument, or with most samples of the batch."""

from __future__ import annotations

from truestep.events import ArgumentsCompared, CheckSkipped, Event, InputsCompared, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule


class InputWithoutInfluence(Rule):
    """A model ignores an argument, the mask of its padding, most samples, or all positions but the first.

    What it does
    ------------
    Repeats a call on a copy of the model with one input changed. Reports an argument that the code of ``forward`` reads
    if other values of it give the same results to the last bit, in eval and in train mode with several seeds, and names
    the line at which its influence ends. The same for an argument that the code does not read, if it has the shape of
    one that has influence, as the second picture of a pair. Reports a mask of 0 and 1 if its complement gives the same
    results, while other values at the positions of the padding change the results of real positions. Reports a model if
    the first sample of the batch changes its results, but the last sample and one in the middle do not; if the first
    position of its sequences does, but no other; and if the padding does, but no token. Reports a model if at least
    half of the samples have one result, since it reads a position of padded states that holds only zeros for them.
    Reports attention that gives weight to the padding of its sequences and none to their tokens: by an inverted mask,
    or one for padding on the other side.

    Why it matters
    --------------
    The program passes the argument, so it looks as if the model used it: a time that is divided as a whole number, or
    edges that a layer drops, leave a model that works without them. With a mask it looks as if padding had no
    influence. But averages, attention and normalisation over padded positions depend on the length of the longest
    sample in the batch. In the proof the same classifier has an accuracy of 0.90 instead of 0.94. A slice in the
    dimension of the samples (``x[0]`` for ``x[:, 0]``) raises no error either, and the predictions of a batch are those
    for its first sample. A causal model with the first position (``out[:, 0]``) in place of the last has seen one
    value of each sequence. An inverted mask leaves the padding: with residual connections the loss still falls, and no
    token depends on another one. The last position of padded states (``out[:, -1]``) is zero for all samples but the
    longest: in the second proof the accuracy is 0.58 instead of 1.00.

    Example
    -------
    ::

        def forward(self, tokens, padding_mask):
            return self.head(self.embed(tokens).mean(1))    # over the padding, too

    Fix
    ---
    Leave padded positions out of every operation over positions::

            kept = (~padding_mask).float().unsqueeze(2)
            return self.head((self.embed(tokens) * kept).sum(1) / kept.sum(1))

    Known false alarms
    ------------------
    An argument that a part of the model takes for a common signature only. A first position that is read on purpose,
    after a layer that ran over all of them; without such a layer the confidence is low. Not reported: arguments with
    one value or with influence in any checked call, those that ``forward`` does not name, or names for their shape and
    in branches of options that are off, of another shape, with a default, or of classes with one signature, masks that
    mark no padding or only padding that has no influence, masks with an effect in train mode only, constant outputs,
    and results in another order.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html
    - https://docs.pytorch.org/docs/stable/tensor_view.html
    """

    id = "input-without-influence"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    explains = (
        "loss-at-chance",
        "parameters-without-effect",
    )
    account = "samples"
    watches = (InputsCompared, ArgumentsCompared, CheckSkipped)
    needs = (InputsCompared,)
    asks = "each input has influence"

    def __init__(self) -> None:
        super().__init__()
        self._skipped = ""
        self._alive: set[tuple[int, str]] = set()
        """Models with names of arguments that had influence in a check."""

    def unobserved(self, run: Progress) -> str:
        return self._skipped if InputsCompared not in run.met and self._skipped else super().unobserved(run)

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case CheckSkipped():
                self._skipped = event.reason
            case ArgumentsCompared():
                self._arguments(event, run)
            case InputsCompared():
                name = run.model_name(event.model)
                if event.padding:
                    mask = event.padding[0]
                    self.report(
                        event.site,
                        f"`{name}` ignores its `{mask}`, and its results depend on the padding",
                        run=run,
                        label=f"`{mask}` has no influence on the results",
                        cost="on a copy, the complement of the mask changed no bit, and other values of the padding "
                        "changed the results",
                        help=f"use `{mask}` in each operation over positions, such as a mean or attention",
                        unit="checks",
                        key=(event.model, mask),
                    )
                if event.lost:
                    self.report(
                        event.site,
                        f"the results of `{name}` depend on the first of {event.samples} samples only",
                        run=run,
                        label="the other samples have no influence",
                        cost="on a copy, another first sample changed the results; another last or middle one did not",
                        help="index the dimension after the samples, `x[:, 0]` in place of `x[0]`",
                        unit="checks",
                        key=(event.model, "samples"),
                    )
                self._attention(event, name, run)
                self._positions(event, name, run)
                self._ends(event, name, run)

    def _attention(self, event: InputsCompared, name: str, run: Progress) -> None:
        if not event.attends:
            return
        padding = f"the padding of `{event.attends}`"
        self.report(
            event.attends_at or event.site,
            f"attention in `{name}` reads {padding}, and not the tokens that its mask leaves out",
            run=run,
            label="the mask is that of padding on the other side" if event.turned else "the mask is inverted",
            related=(Mark(event.site, "the call"),) if event.attends_at and event.site else (),
            cost="on a copy, no position gave weight to these tokens, and padding had weight",
            help="make the mask from the padding itself, `tokens == padding`"
            if event.turned
            else "invert the mask: `key_padding_mask` is True for padding, the mask of "
            "`scaled_dot_product_attention` is False for it",
            unit="checks",
            key=(event.model, "attention"),
        )

    def _ends(self, event: InputsCompared, name: str, run: Progress) -> None:
        if event.blank:
            self.report(
                event.read_at or event.site,
                f"the results of `{name}` do not depend on {event.blank} of {event.samples} samples",
                run=run,
                label="reads a position that holds only zeros for these samples",
                related=(Mark(event.site, "the call"),) if event.read_at and event.site else (),
                cost=f"on a copy, these {event.blank} samples, which differ, had one and the same result",
                help="read the end of each sample, `out[torch.arange(len(out)), lengths - 1]`, or the last state",
                unit="checks",
                key=(event.model, "ends"),
            )

    def _positions(self, event: InputsCompared, name: str, run: Progress) -> None:
        if event.first:
            self.report(
                event.ends or event.site,
                f"the results of `{name}` depend on the first position of its `{event.first}` only",
                run=run,
                label="the influence of the other positions ends here"
                if event.ends
                else "the others have no influence",
                related=(Mark(event.site, "the call"),) if event.ends and event.site else (),
                cost="on a copy, other values there changed no bit of the results; another first position did",
                help="use the last position or a summary of all, `x[:, -1]` or `x.mean(1)`",
                # The first of a sequence can be the state to act on; then no operation runs over the others.
                confidence=Confidence.MEDIUM if event.unused else Confidence.LOW,
                unit="checks",
                key=(event.model, "positions"),
            )
        if event.only_padding:
            self.report(
                event.site,
                f"the results of `{name}` depend on the padding of its `{event.only_padding}` only",
                run=run,
                label="the tokens themselves have no influence",
                cost="on a copy, other tokens changed no bit of the results; other values of the padding did",
                help="invert the mask of the padding",
                unit="checks",
                key=(event.model, "padding"),
            )

    def _arguments(self, event: ArgumentsCompared, run: Progress) -> None:
        name = run.model_name(event.model)
        for argument in event.alive:
            self._alive.add((event.model, argument))
            self.withdraw((event.model, argument))
        for place, argument in enumerate(event.dead if event.training else ()):
            if (event.model, argument) in self._alive:
                continue
            ends: Site | None = None if place else event.ends
            self.report(
                ends or event.site,
                f"the results of `{name}` do not depend on its `{argument}`",
                run=run,
                label=f"the influence of `{argument}` ends here" if ends else f"`{argument}` has no influence",
                related=(Mark(event.site, "the call"),) if ends and event.site else (),
                cost=f"on a copy, other values of `{argument}` changed no bit of the results, in either mode",
                help=f"use the values of `{argument}`, or remove the argument",
                unit="checks",
                key=(event.model, argument),
            )
