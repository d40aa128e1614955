from __future__ import annotations

from truestep.events import Event, NoiseCompared
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule


class NoiseNotInInput(Rule):
    """A model is to predict noise that is not in its input, or gets a noise level that is not that of its input.

    What it does
    ------------
    Compares, over the sampled steps of a training, a target that is drawn from a normal distribution with an input of
    the same shape that the program computes. Reports a target without a correlation with the input, within four
    standard errors. Where the noise has several levels, compares the level of each sample, which is the product of its
    input and its noise, with the argument of one number per sample, and reports an argument without a correlation.

    Why it matters
    --------------
    Noise that is not in the input cannot be predicted: the loss stays at 1, and the model returns zeros. A model with
    levels of other samples learns the average over all levels, and its loss falls nearly as usual. In the proofs, which
    sample points of two arcs, the distance to the arcs is 0.11 without the mistake, 6.1 with noise that is drawn again,
    and 0.15 with time steps that are drawn again.

    Example
    -------
    ::

        noisy = a[t].sqrt() * x + (1 - a[t]).sqrt() * torch.randn_like(x)
        loss = F.mse_loss(model(noisy, t), torch.randn_like(x))     # other noise

    Fix
    ---
    Draw noise and time steps once, and use the same in the input and in the loss::

        noise = torch.randn_like(x)
        noisy = a[t].sqrt() * x + (1 - a[t]).sqrt() * noise
        loss = F.mse_loss(model(noisy, t), noise)

    Known false alarms
    ------------------
    Noise that the program uses in the input, in a share below a fiftieth at every level. Not reported: inputs that the
    program draws or reads as they are, as in tests of speed with random targets, targets that are computed from noise
    (velocities, scores), and levels that the model does not get.

    References
    ----------
    - https://arxiv.org/abs/2006.11239
    """

    id = "noise-not-in-input"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "samples"
    watches = (NoiseCompared,)
    needs = (NoiseCompared,)
    explains = ("loss-at-chance", "loss-never-changes")
    asks = "noise to predict is in the input"

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, NoiseCompared):
            return
        name, level = run.model_name(event.model), event.kind == "level"
        related = [(event.given, "makes the input")]
        if event.loss and event.site and event.loss.line != event.site.line:
            related.append((event.loss, "the loss"))
        self.report(
            event.site,
            f"`{name}` gets noise levels that are not those of its input"
            if level
            else f"`{name}` is to predict noise that is not in its input",
            run=run,
            label="draws levels without a correlation with the noise in the input"
            if level
            else f"draws the target: no correlation with the input in {event.samples:,} values",
            related=tuple(Mark(site, label) for site, label in related if site is not None),
            cost="the model learns one average over all levels" if level else "nothing of this target can be learned",
            help="draw the levels once, for the noise and for the model"
            if level
            else "draw the noise once, and use it in the input and in the loss",
            unit="checks",
            key=event.model,
        )
