from __future__ import annotations

from truestep.events import Event, LossRead, NoiseKept, RunEnded
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule

_WORDS = {"noise": "noise", "zeros": "zeros at random places", "values": "one or two values at random places"}


class ReconstructsTheNoise(Rule):
    """A denoising model is compared with its corrupted input, instead of the samples before the noise.

    What it does
    ------------
    Looks, at sampled steps, for a loss with a target that is the input of the model in this call, while another
    variable of the program holds the same samples before they were corrupted: by noise, or by zeros at random places.
    Reports it if samples come again with other noise in later steps, if the program reads the samples without noise to
    corrupt them only, and if, on a copy, results depend on the input at their places.

    Why it matters
    --------------
    The lowest loss is that of a copy of the input, with its noise. In the proof, an autoencoder leaves all of the noise
    in digits, instead of 17 % of it.

    Example
    -------
    ::

        noisy = clean + 0.4 * torch.randn_like(clean)
        loss = F.mse_loss(model(noisy), noisy)          # keeps the noise

    Fix
    ---
    Compare with the samples without noise::

        loss = F.mse_loss(model(noisy), clean)

    Known false alarms
    ------------------
    Autoencoders of data with strong noise as an augmentation. Not reported: noise below a fifth of the deviation of the
    samples, other augmentations such as flips, crops or mixtures, noise that stays the same for each sample, samples
    that never come again, losses with further terms, such as those of variational autoencoders and of Stein's estimate,
    networks with a blind spot, and samples without noise that the program also reads to compare, to plot or to predict.

    References
    ----------
    - https://dl.acm.org/doi/10.1145/1390156.1390294
    """

    id = "reconstructs-the-noise"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "loss"
    watches = (NoiseKept, LossRead)
    needs = (NoiseKept,)
    asks = "no corrupted input is the target"

    def __init__(self) -> None:
        super().__init__()
        self._kept: list[NoiseKept] = []
        self._alone = False
        """Whether each backward pass began from one loss function."""
        self._other = False

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case NoiseKept():
                self._kept.append(event)
            case LossRead():
                alone = bool(event.function) and not event.root.startswith("Add")
                self._alone |= alone
                self._other |= not alone

    def ended(self, event: RunEnded, run: Progress) -> None:
        if self._alone and not self._other:
            for kept in self._kept:
                self._found(kept, run)

    def _found(self, kept: NoiseKept, run: Progress) -> None:
        apart = kept.made is not None and (kept.site is None or kept.made.line != kept.site.line)
        draft = self.report(
            kept.site,
            f"`{run.model_name(kept.model)}` is compared with its corrupted input, and learns to keep the noise",
            run=run,
            label=f"the target is the input: the samples with {_WORDS[kept.how]}",
            related=(Mark(kept.made, f"corrupts `{kept.clean}`"),) if apart else (),
            cost="the lowest loss is that of a copy of the input, with its noise",
            help=f"compare with `{kept.clean}`, the samples before",
            unit="samples",
            key=kept.model,
        )
        draft.count = draft.total = kept.samples
